package prometheus

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/platform/autoscale-operator/scaling"
)

// Client asks the configured endpoints. It is safe for concurrent use, and
// holds one long-lived HTTP client per endpoint.
type Client struct {
	now       func() time.Time
	endpoints map[string]*endpointClient
}

type endpointClient struct {
	name string
	// query is the address of the API's instant queries.
	query *url.URL
	http  *http.Client
	// maxBytes is the endpoint's own limit, 0 where it sets none.
	maxBytes int64
	// concurrency and perMinute bound the queries of a sampler.
	concurrency, perMinute int
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
	transport, err := newTransport(e)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	client := &endpointClient{
		name:        e.Name,
		query:       base.JoinPath("api/v1/query"),
		maxBytes:    e.MaxResponseBytes,
		concurrency: e.MaxConcurrentQueries,
		perMinute:   e.MaxQueriesPerMinute,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: redirectPolicy(e.HTTPClientConfig.FollowRedirects),
		},
	}
	if client.concurrency == 0 {
		client.concurrency = DefaultMaxConcurrentQueries
	}
	return client, nil
}

// Has reports whether the endpoint is configured.
func (c *Client) Has(endpoint string) bool {
	_, ok := c.endpoints[endpoint]
	return ok
}

// Measure asks all questions of a measure now and returns its sample, or the
// reason why there is none. The source's freshness is asked for after the load: what
// is lost in between is a stale source, not a load of 0. It returns by the sum of the
// two timeouts at the latest. It knows no budget: it is for tools and tests, a [Sampler] is
// for everything that asks again and again.
func (c *Client) Measure(ctx context.Context, m Measure) scaling.Sample {
	readings := [...]reading{{question: &m.Load}, {question: &m.Arrivals}, {question: &m.Freshness.Question}}
	var pending sync.WaitGroup
	for i := range readings[:2] {
		if r := &readings[i]; i == 0 || r.question.Expr != "" {
			pending.Go(func() { r.answer = c.ask(ctx, r.question) })
		}
	}
	pending.Wait()
	if r := &readings[2]; r.question.Expr != "" {
		r.answer = c.ask(ctx, r.question)
	}
	j := judge{Namespace: m.Namespace, Target: m.Target, MaxAge: m.MaxAge, now: c.now()}
	j.sourceMaxAge, j.sourceShare = m.Freshness.MaxAge, m.Freshness.MinHealthyShare
	return j.sample(readings[0], readings[1], readings[2])
}

// ask has one exchange. It returns by the question's timeout at the latest.
func (c *Client) ask(ctx context.Context, q *Question) *answer {
	e, ok := c.endpoints[q.Endpoint]
	if !ok {
		return c.unknownEndpoint(q)
	}
	bounded, cancel := context.WithTimeout(ctx, q.timeout())
	defer cancel()
	asked := c.now()
	x := exchange{endpointClient: e, question: q, maxBytes: e.limit(q)}
	a, err := x.run(bounded)
	if err != nil {
		a = x.failure(ctx, bounded, err)
	}
	a.endpoint, a.asked, a.arrived = e.name, asked, c.now()
	return a
}

func (c *Client) unknownEndpoint(q *Question) *answer {
	known := "it has none"
	if len(c.endpoints) > 0 {
		known = "it has " + strings.Join(slices.Sorted(maps.Keys(c.endpoints)), ", ")
	}
	return &answer{
		reason:  ReasonUnknownEndpoint,
		message: fmt.Sprintf("endpoint %q is not in the operator's configuration; %s", excerpt(q.Endpoint), known),
		arrived: c.now(),
	}
}

// limit is the size of the largest answer that is read: the question's, but
// never more than the endpoint sets.
func (e *endpointClient) limit(q *Question) int64 {
	switch {
	case q.MaxResponseBytes <= 0 && e.maxBytes <= 0:
		return DefaultMaxResponseBytes
	case q.MaxResponseBytes <= 0:
		return e.maxBytes
	case e.maxBytes <= 0:
		return min(q.MaxResponseBytes, MaxMaxResponseBytes)
	}
	return min(q.MaxResponseBytes, e.maxBytes)
}
