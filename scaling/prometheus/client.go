package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/config"

	"example.com/platform/autoscale-operator/scaling"
)

const (
	// DefaultTimeout is the deadline of a query that sets none.
	DefaultTimeout = 5 * time.Second
	// MaxClockSkew is how far a sample may lie ahead of the operator's clock.
	// Synchronized clocks differ by much less.
	MaxClockSkew = 5 * time.Second
)

// Query asks one endpoint for one number.
type Query struct {
	// Endpoint is the name of a configured endpoint.
	Endpoint string
	// Expr is the rendered PromQL expression, see Render.
	Expr string
	// Timeout is the deadline of the whole exchange, the body included. The
	// server is told of it. 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxAge is the age from which on a sample is stale. 0 is no limit.
	MaxAge time.Duration
}

// Client asks the configured endpoints. It is safe for concurrent use, and
// holds one long-lived HTTP client per endpoint.
type Client struct {
	now       func() time.Time
	endpoints map[string]*endpointClient
}

type endpointClient struct {
	name     string
	urls     api.Client
	http     *http.Client
	maxBytes int64
}

// NewClient validates the endpoints and returns a client for them, or every
// fault with its index and field. now is the clock that ages are measured by.
// It opens no connection; certificate files are read.
func NewClient(endpoints []Endpoint, now func() time.Time) (*Client, error) {
	own := make([]Endpoint, len(endpoints))
	copy(own, endpoints)
	if err := validateEndpoints(own); err != nil {
		return nil, err
	}
	c := &Client{now: now, endpoints: make(map[string]*endpointClient, len(own))}
	for i := range own {
		e, err := newEndpointClient(&own[i])
		if err != nil {
			return nil, fmt.Errorf("endpoints[%d] %q: %w", i, own[i].Name, err)
		}
		c.endpoints[own[i].Name] = e
	}
	return c, nil
}

func newEndpointClient(e *Endpoint) (*endpointClient, error) {
	transport, err := config.NewRoundTripperFromConfig(e.HTTPClientConfig, e.Name, config.WithUserAgent("autoscale-operator"))
	if err != nil {
		return nil, err
	}
	urls, err := api.NewClient(api.Config{Address: e.URL, RoundTripper: transport})
	if err != nil {
		return nil, err
	}
	client := &endpointClient{
		name:     e.Name,
		urls:     urls,
		maxBytes: e.MaxResponseBytes,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: redirectPolicy(e.HTTPClientConfig.FollowRedirects),
		},
	}
	if client.maxBytes == 0 {
		client.maxBytes = DefaultMaxResponseBytes
	}
	return client, nil
}

// Has reports whether the endpoint is configured.
func (c *Client) Has(endpoint string) bool {
	_, ok := c.endpoints[endpoint]
	return ok
}

// Sample runs the query and returns its number, or the reason why there is
// none. It returns by the query's timeout at the latest.
func (c *Client) Sample(ctx context.Context, q Query) scaling.Sample {
	e, ok := c.endpoints[q.Endpoint]
	if !ok {
		return invalid(ReasonUnknownEndpoint,
			"endpoint %q is not in the operator's configuration", excerpt(q.Endpoint))
	}
	timeout := q.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	x := &exchange{Client: e.urls, http: e.http, maxBytes: e.maxBytes}
	// No evaluation time is sent: the server then evaluates by its own clock,
	// and the sample's time shows a cached answer or a wrong clock.
	value, warnings, _, err := apiv1.NewAPI(x).Query(bounded, q.Expr, time.Time{}, apiv1.WithTimeout(timeout))
	if err != nil {
		return e.failure(ctx, bounded, timeout, err)
	}
	sample := e.sample(value, c.now(), q.MaxAge)
	if sample.Validity == scaling.Valid && (len(warnings) > 0 || x.partial) {
		return e.partial(sample.Value, warnings)
	}
	return sample
}
