package prometheus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
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
	return newOAuth2Transport(e.HTTPClientConfig.OAuth2, base)
}

// newOAuth2Transport gets tokens, and keeps them, for requests through base. The
// library asks for a token without a deadline, so the wait is bounded here,
// twice: a request returns when its context ends, and a connection to the token
// server ends after tokenTimeout.
func newOAuth2Transport(o *config.OAuth2, base http.RoundTripper) (http.RoundTripper, error) {
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
	tokens := config.NewOAuth2RoundTripper(secret, o, turnEnder{base}, config.WithDialContextFunc(tokenDialer(tokenTimeout)))
	return &tokenTurns{
		next: config.NewUserAgentRoundTripper(userAgent, tokens),
		turn: make(chan struct{}, 1),
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

// tokenTurns lets one request at a time get its token, as the library replaces
// its source of tokens, at first and when a secret changes, while other requests
// read it. A turn ends when the request goes on to the endpoint. A request
// returns when its context ends: the one that is left waiting for the token
// server keeps its turn until tokenTimeout.
type tokenTurns struct {
	next http.RoundTripper // ends turns through turnEnder
	turn chan struct{}
}

// endOfTurn is the key of a request's context for what ends its turn.
type endOfTurn struct{}

// RoundTrip implements http.RoundTripper.
func (t *tokenTurns) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(func() { <-t.turn })
	type result struct {
		resp *http.Response
		err  error
	}
	done := make(chan result)
	go func() {
		defer end() // if there was no token
		resp, err := t.next.RoundTrip(req.WithContext(context.WithValue(ctx, endOfTurn{}, end)))
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

// turnEnder is what a request comes to with its token.
type turnEnder struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t turnEnder) RoundTrip(req *http.Request) (*http.Response, error) {
	if end, ok := req.Context().Value(endOfTurn{}).(func()); ok {
		end()
	}
	return t.RoundTripper.RoundTrip(req)
}
