// Package config reads the operator's configuration file, for the operator and for who
// wants to know what an operator with that file would say.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// Config is the operator's configuration file. Addresses and credentials of
// metric sources stand here and nowhere else.
type Config struct {
	Limits struct {
		// MaxReplicas bounds every AutoScaler's spec.maxReplicas.
		MaxReplicas int32 `yaml:"max_replicas"`
	} `yaml:"limits"`
	// Endpoints that MetricProfiles may name.
	Endpoints []prometheus.Endpoint `yaml:"endpoints"`
	// Managers are the kinds of other replica managers, besides HPAs.
	Managers Managers `yaml:"managers"`
	// Defaults of AutoScalers.
	Defaults Defaults `yaml:"defaults"`
	// Claims of replica counts that another AutoScaler holds or held.
	Claims Claims `yaml:"claims"`
	// Rules of the platform for AutoScalers.
	Rules Rules `yaml:"rules"`
}

// Load reads a configuration file. An unknown field is an error: a typing
// mistake must not turn a limit off.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the file that the administrator named
	if err != nil {
		return nil, err
	}
	var c Config
	c.Limits.MaxReplicas = v1alpha1.DefaultLimits.MaxReplicas
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, oneLine(err))
	}
	if c.Limits.MaxReplicas < 1 || c.Limits.MaxReplicas > v1alpha1.MaxReplicasCeiling {
		return nil, fmt.Errorf("%s: limits.max_replicas is %d; it must be from 1 to %d", path, c.Limits.MaxReplicas, v1alpha1.MaxReplicasCeiling)
	}
	if len(c.Endpoints) == 0 {
		return nil, fmt.Errorf("%s: endpoints: %w", path, errors.New("name at least one Prometheus endpoint"))
	}
	for i := range c.Endpoints {
		c.Endpoints[i].SetDirectory(filepath.Dir(path))
		if err := checkTokenURL(&c.Endpoints[i]); err != nil {
			return nil, fmt.Errorf("%s: endpoints[%d].oauth2.token_url: %w", path, i, err)
		}
	}
	return &c, nil
}

// checkTokenURL refuses an address with secrets in it: they have fields for files. Like
// the endpoint's own it is never repeated. That it is there, Prometheus' client checks.
func checkTokenURL(e *prometheus.Endpoint) error {
	if e.HTTPClientConfig.OAuth2 == nil {
		return nil
	}
	u, err := url.Parse(e.HTTPClientConfig.OAuth2.TokenURL)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.User != nil:
		return errors.New("must not hold credentials: use client_id and client_secret_file instead")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("must not have a query (the part from '?'): use endpoint_params instead")
	case u.Fragment != "":
		return errors.New("must not have a fragment (the part from '#')")
	}
	return nil
}

// Bounds are the limits, as validation takes them.
func (c *Config) Bounds() v1alpha1.Limits {
	return v1alpha1.Limits{MaxReplicas: c.Limits.MaxReplicas}
}

// EndpointNames are what a MetricProfile may name.
func (c *Config) EndpointNames() []string {
	var names []string
	for i := range c.Endpoints {
		names = append(names, c.Endpoints[i].Name)
	}
	return names
}
