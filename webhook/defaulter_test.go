package webhook

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// changes are what the defaulter patches in a manifest, by operation and path.
func changes(t *testing.T, manifest string) map[string]any {
	t.Helper()
	handler := &admission.Webhook{Handler: &AutoScalerDefaulter{Defaults: v1alpha1.Defaults{
		PollIntervalSeconds: 30, Behavior: v1alpha1.Behavior{ToleranceUp: "0.1"},
	}}}

	answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(manifest)},
	}})

	require.True(t, answer.Allowed, "%v", answer.Result)
	changed := map[string]any{}
	for _, p := range answer.Patches {
		value, err := json.Marshal(p.Value)
		require.NoError(t, err)
		changed[p.Operation+" "+p.Path] = string(value)
	}
	if len(answer.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(answer.Patch)
		require.NoError(t, err)
		_, err = patch.Apply([]byte(manifest))
		require.NoError(t, err, "the API server could not apply it")
	}
	return changed
}

const head = `{"apiVersion":"autoscale.example.com/v1alpha1","kind":"AutoScaler","metadata":{"name":"web","namespace":"ns"},`

func TestTheDefaulterFillsInAndTouchesNothingElse(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want map[string]any
	}{
		"what is not set": {
			`{"unknown":{"a":[1]},"paused":false,"metrics":[{"name":"load","unknown":1}]}`,
			map[string]any{
				"add /spec/pollIntervalSeconds": "30", "add /spec/claimPolicy": `"Reject"`,
				"add /spec/metrics/0/maxAgeSeconds": "60", "add /spec/behavior": `{"scaleDownStabilizationSeconds":300,"toleranceUp":"0.1"}`,
			},
		},
		"what is null": {
			`{"pollIntervalSeconds":null,"claimPolicy":null,"behavior":null,"metrics":[{"name":"load","maxAgeSeconds":null,"behavior":{}}]}`,
			map[string]any{
				"add /spec/pollIntervalSeconds": "30", "add /spec/claimPolicy": `"Reject"`,
				"add /spec/metrics/0/maxAgeSeconds": "60", "add /spec/behavior": `{"scaleDownStabilizationSeconds":300,"toleranceUp":"0.1"}`,
				"add /spec/metrics/0/behavior/scaleDownStabilizationSeconds": "300",
			},
		},
		"a 0 and an empty text stay, for the schema to refuse": {
			`{"pollIntervalSeconds":0,"claimPolicy":"","behavior":{"scaleDownStabilizationSeconds":0,"toleranceUp":"","toleranceDown":""},"metrics":[{"name":"load","maxAgeSeconds":0}]}`,
			map[string]any{},
		},
		"a time stays as it is written": {
			`{"pausedUntil":"2099-01-01T06:00:00.5+02:00","pollIntervalSeconds":15,"claimPolicy":"Wait","behavior":{"toleranceUp":"100m"},"metrics":[]}`,
			map[string]any{"add /spec/behavior/scaleDownStabilizationSeconds": "300"},
		},
		"what cannot be read": {`{"minReplicas":"two","metrics":[{"name":"load"}]}`, map[string]any{}},
		"a metric that is null": {
			`{"pollIntervalSeconds":15,"claimPolicy":"Wait","behavior":{"scaleDownStabilizationSeconds":0,"toleranceUp":"0"},"metrics":[null]}`, map[string]any{},
		},
		"a list that is no list":  {`{"metrics":{"name":"load"}}`, map[string]any{}},
		"a spec that is a string": {`"none"`, map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, changes(t, head+`"spec":`+tc.spec+`}`))
		})
	}
}

func TestTheDefaulterLeavesWhatHasNoSpecOrIsGoing(t *testing.T) {
	assert.Empty(t, changes(t, head+`"status":{}}`))
	assert.Empty(t, changes(t, `[]`))
	assert.Empty(t, changes(t, `{"metadata":{"deletionTimestamp":"2026-11-30T12:00:00Z"},"spec":{}}`))
}
