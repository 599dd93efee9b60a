package prometheus

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"golang.org/x/oauth2"

	"example.com/platform/autoscale-operator/scaling"
)

// failure turns an error into a sample with an enumerated reason. Errors of the
// network name addresses, so their texts are not passed on.
func (e *endpointClient) failure(caller, bounded context.Context, timeout time.Duration, err error) scaling.Sample {
	var (
		status     *statusError
		resultType resultTypeError
		malformed  malformedError
		decoding   *apiv1.Error
	)
	switch {
	case errors.As(err, &status):
		return e.statusFailure(status)
	case errors.As(err, &resultType):
		return e.invalid(ReasonUnexpectedResultType,
			"the result type is %s; the query must return a vector of one series, or a scalar", string(resultType))
	case errors.As(err, &malformed):
		return e.invalid(ReasonBadResponse, "%s", string(malformed))
	case errors.As(err, &decoding):
		return e.invalid(ReasonBadResponse, "the answer cannot be decoded as a result of the Prometheus API")
	case errors.Is(err, errTooLarge):
		return e.invalid(ReasonResponseTooLarge,
			"the answer is larger than %d bytes; the query must return one series", e.maxBytes)
	case errors.Is(caller.Err(), context.Canceled):
		return e.invalid(ReasonCanceled, "the query was given up before there was an answer")
	case bounded.Err() != nil:
		return e.invalid(ReasonTimeout, "there was no complete answer within %s", timeout)
	}
	return e.transportFailure(err)
}

// statusFailure classifies by the HTTP status first. The server's own text is
// shown only where it says what is wrong with the query.
func (e *endpointClient) statusFailure(s *statusError) scaling.Sample {
	switch kind := apiv1.ErrorType(s.kind); {
	case s.code/100 == 3:
		return e.invalid(ReasonRedirected,
			"the server redirects elsewhere, which is not followed; set the endpoint's url to the final address")
	case s.code == http.StatusUnauthorized || s.code == http.StatusForbidden:
		return e.invalid(ReasonUnauthorized, "the server refused the operator's credentials (HTTP %d)", s.code)
	case s.code == http.StatusTooManyRequests:
		return e.invalid(ReasonRateLimited, "the server asks for fewer queries (HTTP 429)")
	case kind == apiv1.ErrTimeout:
		return e.invalid(ReasonTimeout, "the server gave up evaluating the query in time")
	case s.code == http.StatusBadRequest || s.code == http.StatusUnprocessableEntity,
		s.code/100 == 2 && (kind == apiv1.ErrBadData || kind == apiv1.ErrExec):
		if s.text == "" {
			return e.invalid(ReasonQueryRejected, "the server rejected the query (HTTP %d)", s.code)
		}
		return e.invalid(ReasonQueryRejected, "the server rejected the query: %s", excerpt(s.text))
	case s.code/100 == 5 || s.code/100 == 2:
		return e.invalid(ReasonServerError, "the server failed to answer the query (HTTP %d)", s.code)
	}
	return e.invalid(ReasonUnexpectedStatus, "the server answered with HTTP %d; does the endpoint's url lead to a Prometheus API?", s.code)
}

func (e *endpointClient) transportFailure(err error) scaling.Sample {
	var (
		file        *fs.PathError
		token       *oauth2.RetrieveError
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
	)
	switch {
	case errors.As(err, &file):
		return e.invalid(ReasonCredentialsUnreadable, "a credential or certificate file of the endpoint cannot be read")
	case errors.As(err, &token):
		return e.invalid(ReasonUnauthorized, "the endpoint's OAuth2 token was refused")
	case errors.As(err, &dns):
		return e.invalid(ReasonUnreachable, "the server's host name cannot be resolved")
	case errors.As(err, &certificate):
		return e.invalid(ReasonUnreachable, "the server's certificate is not trusted")
	case errors.As(err, &alert):
		return e.invalid(ReasonUnreachable, "the server refused the TLS handshake")
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.invalid(ReasonUnreachable, "the connection was refused")
	}
	return e.invalid(ReasonUnreachable, "the connection failed or broke")
}
