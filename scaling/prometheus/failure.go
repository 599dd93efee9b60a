package prometheus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"golang.org/x/oauth2"
)

// failure turns an error into an answer with an enumerated reason. Errors of the
// network name addresses, so their texts are not passed on.
func (x *exchange) failure(caller, bounded context.Context, err error) *answer {
	var (
		status     *statusError
		resultType resultTypeError
		malformed  malformedError
		tooMany    tooManySeriesError
	)
	switch {
	case errors.As(err, &status):
		a := x.statusFailure(status)
		a.retryAfter = status.retryAfter
		return a
	case errors.As(err, &resultType) && x.question.Series.single():
		return x.failed(ReasonUnexpectedResultType,
			"the result type is %s; the query must return a vector of one series, or a scalar", string(resultType))
	case errors.As(err, &resultType):
		return x.failed(ReasonUnexpectedResultType,
			"the result type is %s; the query must return a vector with a series for each Deployment", string(resultType))
	case errors.As(err, &malformed):
		return x.failed(ReasonBadResponse, "%s", string(malformed))
	case errors.As(err, &tooMany):
		return x.failed(ReasonTooManySeries, "the query returned more than the %d series that the profile allows", int(tooMany))
	case errors.Is(err, errTooLarge):
		return x.failed(ReasonResponseTooLarge, "the answer is larger than %d bytes", x.maxBytes)
	case errors.Is(caller.Err(), context.Canceled):
		return x.failed(ReasonCanceled, "the query was given up before there was an answer")
	case bounded.Err() != nil:
		return x.failed(ReasonTimeout, "there was no complete answer within %s", x.question.timeout())
	}
	return x.transportFailure(err)
}

// failed is an answer that is none.
func (e *endpointClient) failed(reason, format string, args ...any) *answer {
	return &answer{reason: reason, message: fmt.Sprintf("endpoint %q: ", e.name) + fmt.Sprintf(format, args...)}
}

// statusFailure classifies by the HTTP status first. The server's own text is
// shown only where it says what is wrong with the query.
func (e *endpointClient) statusFailure(s *statusError) *answer {
	switch kind := apiv1.ErrorType(s.kind); {
	case s.code/100 == 3:
		return e.failed(ReasonRedirected,
			"the server redirects elsewhere, which is not followed; set the endpoint's url to the final address")
	case s.code == http.StatusUnauthorized || s.code == http.StatusForbidden:
		return e.failed(ReasonUnauthorized, "the server refused the operator's credentials (HTTP %d)", s.code)
	case s.code == http.StatusTooManyRequests:
		return e.failed(ReasonRateLimited, "the server asks for fewer queries (HTTP 429)")
	case kind == apiv1.ErrTimeout || s.code == http.StatusRequestTimeout:
		return e.failed(ReasonTimeout, "the server gave up evaluating the query in time")
	case s.code == http.StatusBadRequest || s.code == http.StatusUnprocessableEntity,
		s.code/100 == 2 && (kind == apiv1.ErrBadData || kind == apiv1.ErrExec):
		if s.text == "" {
			return e.failed(ReasonQueryRejected, "the server rejected the query (HTTP %d)", s.code)
		}
		return e.failed(ReasonQueryRejected, "the server rejected the query: %s", excerpt(s.text))
	case s.code/100 == 5 || s.code/100 == 2:
		return e.failed(ReasonServerError, "the server failed to answer the query (HTTP %d)", s.code)
	}
	return e.failed(ReasonUnexpectedStatus, "the server answered with HTTP %d; does the endpoint's url lead to a Prometheus API?", s.code)
}

func (e *endpointClient) transportFailure(err error) *answer {
	var (
		file        *fs.PathError
		token       *oauth2.RetrieveError
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
	)
	switch {
	case errors.As(err, &file):
		return e.failed(ReasonCredentialsUnreadable, "a credential or certificate file of the endpoint cannot be read")
	case errors.As(err, &token):
		return e.failed(ReasonUnauthorized, "the endpoint's OAuth2 token was refused")
	case errors.As(err, &dns):
		return e.failed(ReasonUnreachable, "the server's host name cannot be resolved")
	case errors.As(err, &certificate):
		return e.failed(ReasonUnreachable, "the server's certificate is not trusted")
	case errors.As(err, &alert):
		return e.failed(ReasonUnreachable, "the server refused the TLS handshake")
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.failed(ReasonUnreachable, "the connection was refused")
	}
	return e.failed(ReasonUnreachable, "the connection failed or broke")
}
