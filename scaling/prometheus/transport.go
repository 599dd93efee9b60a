package prometheus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/common/config"
)

const (
	userAgent = "autoscale-operator"
	// dialTimeout ends attempts to connect that nobody waits for any more: the
	// kernel would go on for minutes.
	dialTimeout = 10 * time.Second
	// tokenTimeout is how long a connection to a token server lives, whatever
	// happens on it.
	tokenTimeout = 10 * time.Second
	// maxTokenWaits bounds the requests that may wait for a token, where no more
	// queries than that may run at once.
	maxTokenWaits = 16
	// grantJWT is the OAuth2 grant that needs a key and no secret.
	grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// newTransport is the HTTP transport of an endpoint. It lives as long as the
// client: connections are kept and used again.
func newTransport(e *Endpoint) (http.RoundTripper, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	cfg := e.HTTPClientConfig
	cfg.OAuth2 = nil
	base, err := config.NewRoundTripperFromConfig(cfg, e.Name,
		config.WithDialContextFunc(dialer.DialContext), config.WithUserAgent(userAgent))
	if err != nil || e.HTTPClientConfig.OAuth2 == nil {
		return base, err
	}
	return newOAuth2Transport(e.HTTPClientConfig.OAuth2, base, max(maxTokenWaits, e.MaxConcurrentQueries))
}

// newOAuth2Transport gets tokens, and keeps them, for requests through base. The
// library asks for a token without a deadline and lets all requests wait for
// it, so the wait is bounded here, twice: a request returns when its context
// ends, and a connection to the token server ends after tokenTimeout.
func newOAuth2Transport(o *config.OAuth2, base http.RoundTripper, slots int) (http.RoundTripper, error) {
	text, file, ref := o.ClientSecret, o.ClientSecretFile, o.ClientSecretRef
	if o.GrantType == grantJWT {
		text, file, ref = o.ClientCertificateKey, o.ClientCertificateKeyFile, o.ClientCertificateKeyRef
	}
	var secret config.SecretReader = config.NewInlineSecret(string(text))
	switch {
	case text != "":
	case file != "":
		secret = config.NewFileSecret(file)
	case ref != "":
		return nil, errors.New("oauth2: a secret cannot be a reference; name a file")
	}
	tokens := config.NewOAuth2RoundTripper(secret, o, base, config.WithDialContextFunc(tokenDialer(tokenTimeout)))
	return &abandoning{
		next:  config.NewUserAgentRoundTripper(userAgent, tokens),
		slots: make(chan struct{}, slots),
	}, nil
}

// tokenDialer makes connections that end by themselves.
func tokenDialer(lifetime time.Duration) config.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		bounded, cancel := context.WithTimeout(ctx, lifetime)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(bounded, network, address)
		if err != nil {
			return nil, err
		}
		deadline, _ := bounded.Deadline()
		if err := conn.SetDeadline(deadline); err != nil {
			_ = conn.Close() // of no use without the deadline
			return nil, err
		}
		return conn, nil
	}
}

// abandoning returns when the request's context ends, even if the transport
// below does not. As many requests as there are slots may be abandoned and not
// ended yet; further ones wait for a slot.
type abandoning struct {
	next  http.RoundTripper
	slots chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (t *abandoning) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		resp *http.Response
		err  error
	}
	done := make(chan result)
	go func() {
		defer func() { <-t.slots }()
		resp, err := t.next.RoundTrip(req)
		select {
		case done <- result{resp, err}:
		case <-ctx.Done():
			if err == nil {
				_ = resp.Body.Close() // nobody reads it
			}
		}
	}()
	select {
	case r := <-done:
		return r.resp, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
