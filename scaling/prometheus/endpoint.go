package prometheus

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/prometheus/common/config"
)

const (
	// DefaultMaxResponseBytes bounds an answer where the endpoint sets no limit.
	// One sample needs some hundred bytes.
	DefaultMaxResponseBytes = 1 << 20
	// MaxMaxResponseBytes is the largest limit that an endpoint may set.
	MaxMaxResponseBytes = 64 << 20
	// DefaultMaxConcurrentQueries bounds the queries that run at the same time
	// where the endpoint sets no limit.
	DefaultMaxConcurrentQueries = 8
	// MaxMaxConcurrentQueries is the largest such limit that an endpoint may set.
	MaxMaxConcurrentQueries = 1000
	// MaxMaxQueriesPerMinute is the largest budget that an endpoint may set.
	MaxMaxQueriesPerMinute = 600_000
)

// Endpoint is one Prometheus-compatible server, as an administrator configures
// it. In YAML the HTTP client's fields (basic_auth, authorization, tls_config,
// http_headers, …) stand beside name and url, as in Prometheus' own files.
// Credential and certificate files are read again when they change.
type Endpoint struct {
	// Name is how metric profiles refer to the endpoint: a DNS label, unique.
	Name string `yaml:"name"`
	// URL is the address before /api/v1: http or https, with an optional path,
	// without credentials, query or fragment.
	URL string `yaml:"url"`
	// MaxResponseBytes bounds the body of an answer: 1 to MaxMaxResponseBytes;
	// 0 is DefaultMaxResponseBytes.
	MaxResponseBytes int64 `yaml:"max_response_bytes,omitempty"`
	// MaxConcurrentQueries bounds the queries that run at the same time: 1 to
	// MaxMaxConcurrentQueries; 0 is DefaultMaxConcurrentQueries.
	MaxConcurrentQueries int `yaml:"max_concurrent_queries,omitempty"`
	// MaxQueriesPerMinute bounds the rate of queries: 1 to
	// MaxMaxQueriesPerMinute; 0 is no limit.
	MaxQueriesPerMinute int `yaml:"max_queries_per_minute,omitempty"`
	// HTTPClientConfig is authentication, TLS, proxy and headers. Redirects are
	// followed within the same scheme and host only.
	HTTPClientConfig config.HTTPClientConfig `yaml:",inline"`
}

// UnmarshalYAML reads an endpoint over the defaults of Prometheus' HTTP client.
// It does not validate: that is done for all endpoints at once, by NewClient.
func (e *Endpoint) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Endpoint
	*e = Endpoint{HTTPClientConfig: config.DefaultHTTPClientConfig}
	return unmarshal((*plain)(e))
}

// SetDirectory makes relative file names relative to the directory of the file
// that the endpoint was read from.
func (e *Endpoint) SetDirectory(dir string) { e.HTTPClientConfig.SetDirectory(dir) }

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate returns every fault of the endpoint, each with its field. It turns
// the deprecated bearer_token fields into authorization.
func (e *Endpoint) Validate() error {
	var errs []error
	if !dnsLabel.MatchString(e.Name) {
		errs = append(errs, fmt.Errorf("name: %q is not a DNS label: use up to 63 lower-case letters, digits and '-'", e.Name))
	}
	if err := validateURL(e.URL); err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	if e.MaxResponseBytes < 0 || e.MaxResponseBytes > MaxMaxResponseBytes {
		errs = append(errs, fmt.Errorf("max_response_bytes: %d is not between 1 and %d", e.MaxResponseBytes, MaxMaxResponseBytes))
	}
	if e.MaxConcurrentQueries < 0 || e.MaxConcurrentQueries > MaxMaxConcurrentQueries {
		errs = append(errs, fmt.Errorf("max_concurrent_queries: %d is not between 1 and %d", e.MaxConcurrentQueries, MaxMaxConcurrentQueries))
	}
	if e.MaxQueriesPerMinute < 0 || e.MaxQueriesPerMinute > MaxMaxQueriesPerMinute {
		errs = append(errs, fmt.Errorf("max_queries_per_minute: %d is not between 1 and %d", e.MaxQueriesPerMinute, MaxMaxQueriesPerMinute))
	}
	if err := e.HTTPClientConfig.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// validateURL never repeats the URL: it may hold a password.
func validateURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		return errors.New("is required")
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("has no host")
	case u.User != nil:
		return errors.New("must not hold credentials: use basic_auth or authorization instead")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("must not have a query (the part from '?')")
	case u.Fragment != "":
		return errors.New("must not have a fragment (the part from '#')")
	}
	return nil
}

// validateEndpoints returns every fault of every endpoint, with its index.
func validateEndpoints(endpoints []Endpoint) error {
	var errs []error
	seen := make(map[string]int, len(endpoints))
	for i := range endpoints {
		if err := endpoints[i].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("endpoints[%d]: %w", i, err))
		}
		if first, ok := seen[endpoints[i].Name]; ok {
			errs = append(errs, fmt.Errorf("endpoints[%d]: name: %q is already used by endpoints[%d]", i, endpoints[i].Name, first))
			continue
		}
		seen[endpoints[i].Name] = i
	}
	return errors.Join(errs...)
}
