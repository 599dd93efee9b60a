package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestBeforeTheFirstAnswersAStatusStandsIfItIsOfTheSame(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		stands bool
	}{
		"the same spec and Deployment: after a restart": {func(*evaluation) {}, true},
		"a new object":                    {func(e *evaluation) { e.before.Status.LastDecision = nil }, false},
		"a new spec":                      {func(e *evaluation) { e.before.Generation++ }, false},
		"a Deployment that has come back": {func(e *evaluation) { e.target.uid = "new" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(time.Minute)
			e.before.Status.TargetUID, e.target.uid = "d", "d"
			e.setTrue(v1alpha1.ConditionBound, v1alpha1.ReasonClaimHeld, "")
			tc.change(e)
			e.awaitSamples()
			if tc.stands {
				assert.Equal(t, e.before, e.autoscaler)
				return
			}
			for _, c := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionAbleToScale} {
				got := meta.FindStatusCondition(e.autoscaler.Status.Conditions, c)
				assert.Equal(t, metav1.ConditionUnknown, got.Status, c)
				assert.Equal(t, v1alpha1.ReasonAwaitingSamples, got.Reason, c)
			}
			assert.Equal(t, v1alpha1.ReasonClaimHeld, e.condition(v1alpha1.ConditionBound).Reason)
		})
	}
}

func TestAMetricIsDescribedAsTheDecisionTookIt(t *testing.T) {
	e := evaluationAt(time.Minute)
	e.autoscaler = builders.MakeAutoScaler("production", "web").Metric("a", "p", "1").Metric("b", "p", "1").Metric("c", "p", "1").Obj()
	e.samples = []scaling.Sample{
		{Validity: scaling.Valid, Value: 3}, {Validity: scaling.Valid, Value: 3}, invalid("NoData", "the query matched no series"),
	}
	e.decision.TotalMetrics = 3
	e.decision.Metrics[0].Validity = scaling.Valid
	e.decision.Metrics[1].Reason = scaling.ReasonNoReadyReplicas
	e.decision.Metrics[2].Reason = "NoData"

	e.describeSamples()

	got := e.condition(v1alpha1.ConditionMetricsAvailable)
	assert.Equal(t, scaling.ReasonNoReadyReplicas, got.Reason)
	assert.Equal(t, `metric "b": no replica is Ready, so that there is nothing that its value is the average of (NoReadyReplicas); `+
		`metric "c": the query matched no series (NoData)`, got.Message)
}

func TestWhatIsWrongWithAMetricIsBlamedOnWhoCanMendIt(t *testing.T) {
	p := builders.MakeMetricProfile("total").Obj()
	parameters := &spec.ParameterError{Errs: field.ErrorList{field.Required(field.NewPath("spec"), "queue")}}
	assert.Equal(t, v1alpha1.ReasonParametersInvalid, unmeasurable(p, parameters).Reason)
	assert.Equal(t, v1alpha1.ReasonProfileInvalid, unmeasurable(p, errors.New("spec.query: bad")).Reason)
}

func TestASubscriberIsTheNameOfAnAutoScaler(t *testing.T) {
	key := types.NamespacedName{Namespace: "production", Name: "web.v2"}
	assert.Equal(t, key, nameOfSubscriber(subscriber(key)))
}
