package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFC12_AnUndecodableObjectHarmsOnlyItselfInAList(t *testing.T) {
	list := `{"apiVersion":"autoscale.example.com/v1alpha1","kind":"AutoScalerList","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"good","namespace":"a"},"spec":{"targetRef":{"name":"web"},"minReplicas":1,"maxReplicas":3}},
		{"metadata":{"name":"text-for-a-number","namespace":"b"},"spec":{"targetRef":{"name":"web"},"minReplicas":"two","maxReplicas":3}},
		{"metadata":{"name":"number-for-an-object","namespace":"b"},"spec":7},
		{"metadata":{"name":"null-spec","namespace":"b"},"spec":null},
		{"metadata":{"name":"bad-status","namespace":"c"},"spec":{"minReplicas":1},"status":{"targetReplicas":"x"}}]}`

	var got AutoScalerList
	require.NoError(t, json.Unmarshal([]byte(list), &got))

	require.Len(t, got.Items, 5)
	assert.Empty(t, got.Items[0].DecodeError)
	assert.Equal(t, int32(3), got.Items[0].Spec.MaxReplicas)
	assert.Contains(t, got.Items[1].DecodeError, "minReplicas")
	assert.Equal(t, AutoScalerSpec{}, got.Items[1].Spec, "nothing of a spec that does not decode is acted on")
	assert.NotEmpty(t, got.Items[2].DecodeError)
	assert.Empty(t, got.Items[3].DecodeError)
	assert.Empty(t, got.Items[4].DecodeError, "a bad status is dropped, it is the operator's to write")
	assert.Equal(t, AutoScalerStatus{}, got.Items[4].Status)

	errs := ValidateAutoScaler(&got.Items[1], DefaultLimits)
	require.Len(t, errs, 1)
	assert.Equal(t, "spec", errs[0].Field)
	assert.Contains(t, errs[0].Detail, "minReplicas")
}

func TestEveryKindKeepsADecodeErrorToItself(t *testing.T) {
	var p MetricProfile
	require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"p"},"spec":{"timeoutSeconds":"5s"}}`), &p))
	assert.Contains(t, p.DecodeError, "timeoutSeconds")
	assert.NotEmpty(t, ValidateMetricProfile(&p))

	var b ScaleBinding
	require.NoError(t, json.Unmarshal([]byte(`{"metadata":{"name":"b"},"spec":{"epoch":"1"}}`), &b))
	assert.Contains(t, b.DecodeError, "epoch")
}

func TestDecodingRoundTrips(t *testing.T) {
	in := `{"kind":"AutoScaler","apiVersion":"autoscale.example.com/v1alpha1","metadata":{"name":"a","uid":"u","generation":3},` +
		`"spec":{"targetRef":{"name":"web"},"minReplicas":1,"maxReplicas":3,"metrics":[{"name":"m","type":"Prometheus","metricProfileRef":"p","targetPerReplica":"100"}]},` +
		`"status":{"observedGeneration":3,"memory":{"targetUID":"d","observedTime":"2026-11-29T10:00:00.000001Z"}}}`
	var a AutoScaler
	require.NoError(t, json.Unmarshal([]byte(in), &a))
	out, err := json.Marshal(&a)
	require.NoError(t, err)
	assert.JSONEq(t, in, string(out))
}
