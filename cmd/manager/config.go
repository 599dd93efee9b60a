package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// config is the operator's configuration file. Addresses and credentials of
// metric sources stand here and nowhere else.
type config struct {
	Limits struct {
		// MaxReplicas bounds every AutoScaler's spec.maxReplicas.
		MaxReplicas int32 `yaml:"max_replicas"`
	} `yaml:"limits"`
	// Endpoints that MetricProfiles may name.
	Endpoints []prometheus.Endpoint `yaml:"endpoints"`
	// Managers are the kinds of other replica managers, besides HPAs.
	Managers managersConfig `yaml:"managers"`
	// Defaults of AutoScalers.
	Defaults defaultsConfig `yaml:"defaults"`
	// Claims of replica counts that another AutoScaler holds or held.
	Claims claimsConfig `yaml:"claims"`
	// Rules of the platform for AutoScalers.
	Rules rulesConfig `yaml:"rules"`
}

// loadConfig reads a configuration file. An unknown field is an error: a typing
// mistake must not turn a limit off.
func loadConfig(path string) (*config, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the file that the administrator named
	if err != nil {
		return nil, err
	}
	var c config
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
	}
	return &c, nil
}

func (c *config) limits() v1alpha1.Limits {
	return v1alpha1.Limits{MaxReplicas: c.Limits.MaxReplicas}
}

func (c *config) endpointNames() []string {
	var names []string
	for i := range c.Endpoints {
		names = append(names, c.Endpoints[i].Name)
	}
	return names
}
