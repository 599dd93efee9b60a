package webhook

import (
	"context"
	"encoding/json"
	"net/http"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// DefaulterPath is where the API server asks the defaulter.
const DefaulterPath = "/mutate-autoscale-example-com-v1alpha1-autoscaler"

// AutoScalerDefaulter fills in what an AutoScaler leaves open, so that what is stored
// says how it is treated, also after the platform's defaults change.
//
// It is a handler of its own, and not controller-runtime's Defaulter, because that
// sends back the whole object as the Go type has it: a required field that somebody
// forgot would be there as 0 or "", and no longer be missed by the schema.
type AutoScalerDefaulter struct {
	Defaults v1alpha1.Defaults
}

// Handle adds what is not set. It changes nothing of an object that cannot be read or
// is being deleted; the schema tells what is wrong with it.
func (d *AutoScalerDefaulter) Handle(_ context.Context, req admission.Request) admission.Response {
	var before v1alpha1.AutoScaler
	var written writtenSpec
	if kjson.Unmarshal(req.Object.Raw, &before) != nil || kjson.Unmarshal(req.Object.Raw, &written) != nil || written.Spec == nil {
		return admission.Allowed("")
	}
	after := before.DeepCopy()
	v1alpha1.Default(after, d.Defaults)
	written.restoreZeros(after)
	if apiequality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return admission.Allowed("")
	}
	from, err := json.Marshal(specOnly{&before.Spec})
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	to, err := json.Marshal(specOnly{&after.Spec})
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(from, to)
}

type specOnly struct {
	Spec *v1alpha1.AutoScalerSpec `json:"spec"`
}

// writtenSpec tells a 0 or "" that somebody wrote from what is not set.
type writtenSpec struct {
	Spec *struct {
		PollIntervalSeconds *int32                `json:"pollIntervalSeconds"`
		ClaimPolicy         *v1alpha1.ClaimPolicy `json:"claimPolicy"`
		Metrics             []*struct {
			MaxAgeSeconds *int32 `json:"maxAgeSeconds"`
		} `json:"metrics"`
		Behavior struct {
			ToleranceUp   *string `json:"toleranceUp"`
			ToleranceDown *string `json:"toleranceDown"`
		} `json:"behavior"`
	} `json:"spec"`
}

// restoreZeros takes back what was filled in for them: the schema must refuse them
// like any other value out of bounds. A null among the metrics has no fields to fill.
func (w *writtenSpec) restoreZeros(a *v1alpha1.AutoScaler) {
	if p := w.Spec.PollIntervalSeconds; p != nil {
		a.Spec.PollIntervalSeconds = *p
	}
	if p := w.Spec.ClaimPolicy; p != nil {
		a.Spec.ClaimPolicy = *p
	}
	if p := w.Spec.Behavior.ToleranceUp; p != nil {
		a.Spec.Behavior.ToleranceUp = *p
	}
	if p := w.Spec.Behavior.ToleranceDown; p != nil {
		a.Spec.Behavior.ToleranceDown = *p
	}
	for i := range min(len(w.Spec.Metrics), len(a.Spec.Metrics)) {
		switch m := w.Spec.Metrics[i]; {
		case m == nil:
			a.Spec.Metrics[i].MaxAgeSeconds = 0
		case m.MaxAgeSeconds != nil:
			a.Spec.Metrics[i].MaxAgeSeconds = *m.MaxAgeSeconds
		}
	}
}
