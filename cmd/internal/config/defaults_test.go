package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func parseDefaults(t *testing.T, content string) (v1alpha1.Defaults, error) {
	t.Helper()
	var c Defaults
	require.NoError(t, yaml.UnmarshalStrict([]byte(content), &c))
	return c.Values()
}

func TestDefaultsOfThePlatformAreRead(t *testing.T) {
	none, err := parseDefaults(t, "{}")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.Defaults{}, none)

	all, err := parseDefaults(t, `
poll_interval_seconds: 30
max_age_seconds: 90
claim_policy: Wait
behavior:
  scale_up_max_step: 8
  scale_up_rate: {max_replicas: 20, period_seconds: 60}
  scale_up_stabilization_seconds: 30
  scale_down_max_step: 1
  scale_down_stabilization_seconds: 0
  scale_down_min_interval_seconds: 60
  tolerance_up: "0.1"
  tolerance_down: 50m
`)
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.Defaults{
		PollIntervalSeconds: 30, MaxAgeSeconds: 90, ClaimPolicy: v1alpha1.ClaimWait,
		Behavior: v1alpha1.Behavior{
			ScaleUpMaxStep: new(int32(8)), ScaleDownMaxStep: new(int32(1)),
			ScaleUpRate:                   &v1alpha1.ScaleRate{MaxReplicas: 20, PeriodSeconds: 60},
			ScaleUpStabilizationSeconds:   new(int32(30)),
			ScaleDownStabilizationSeconds: new(int32(0)), ScaleDownMinIntervalSeconds: new(int32(60)),
			ToleranceUp: "0.1", ToleranceDown: "50m",
		},
	}, all)
}

func TestBadDefaultsOfThePlatformSayWhereAndWhat(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    []string
	}{
		"a poll of 0":               {"poll_interval_seconds: 0", []string{"defaults.poll_interval_seconds", "from 5 to 3600"}},
		"an age past an hour":       {"max_age_seconds: 3601", []string{"defaults.max_age_seconds", "from 1 to 3600"}},
		"a policy that is none":     {"claim_policy: wait", []string{"defaults.claim_policy", `"Reject", "Wait"`}},
		"an empty policy":           {`claim_policy: ""`, []string{"defaults.claim_policy"}},
		"a step of 0":               {"behavior: {scale_down_max_step: 0}", []string{"defaults.behavior.scale_down_max_step", "from 1 to 100000"}},
		"a rate without a period":   {"behavior: {scale_up_rate: {max_replicas: 5}}", []string{"defaults.behavior.scale_up_rate.period_seconds", "from 1 to 3600"}},
		"a long up-window":          {"behavior: {scale_up_stabilization_seconds: 3601}", []string{"defaults.behavior.scale_up_stabilization_seconds", "from 0 to 3600"}},
		"a tolerance above 1":       {"behavior: {tolerance_up: '1.1'}", []string{"defaults.behavior.tolerance_up", "share from 0 to 1"}},
		"an empty tolerance":        {"behavior: {tolerance_down: ''}", []string{"defaults.behavior.tolerance_down", "share from 0 to 1"}},
		"two mistakes, both named":  {"{poll_interval_seconds: 1, max_age_seconds: -1}", []string{"poll_interval_seconds", "max_age_seconds"}},
		"a window longer than 24 h": {"behavior: {scale_down_stabilization_seconds: 86401}", []string{"defaults.behavior.scale_down_stabilization_seconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDefaults(t, tc.content)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
	var c Defaults
	assert.ErrorContains(t, yaml.UnmarshalStrict([]byte("behavior: {scale_up_step: 1}"), &c), "scale_up_step")
}
