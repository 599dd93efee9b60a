package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// queueProfile is one whose AutoScalers name a queue.
func queueProfile(queues ...v1alpha1.ParameterValue) *v1alpha1.MetricProfile {
	p := builders.MakeMetricProfile("total").Query("sum(queue_length{namespace=$namespace, queue=$queue})").Obj()
	p.Spec.Parameters = []v1alpha1.ProfileParameter{{Name: "queue", Values: queues}}
	return p
}

func ofQueue(name string) *v1alpha1.AutoScaler {
	a := builders.MakeAutoScaler("ns", "web").UID("new").Obj()
	a.Spec.Metrics[0].Parameters = map[string]string{"queue": name}
	return a
}

func TestParametersAreHeldToTheProfileAtAdmission(t *testing.T) {
	for name, tc := range map[string]struct {
		a    *v1alpha1.AutoScaler
		want string // "": it is admitted
	}{
		"an allowed one":  {ofQueue("orders"), ""},
		"another value":   {ofQueue("payments"), "spec.metrics[0].parameters[queue]"},
		"none":            {builders.MakeAutoScaler("ns", "web").UID("new").Obj(), "spec.metrics[0].parameters[queue]"},
		"FC-10 a hostile": {ofQueue(`"} or vector(1e9) #`), "spec.metrics[0].parameters[queue]"},
	} {
		t.Run(name, func(t *testing.T) {
			live := store(t, queueProfile("orders"), deployment(2))
			v := validator(t, live, live)

			_, err := v.ValidateCreate(request(t), tc.a)

			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			assert.Empty(t, owner(t, live), "nothing is claimed for it")
		})
	}
}

func TestFC29_AParameterThatTheCachedProfileDoesNotAllowYetIsAdmitted(t *testing.T) {
	live := store(t, queueProfile("orders", "payments"), deployment(2))
	v := validator(t, store(t, queueProfile("orders"), deployment(2)), live)

	_, err := v.ValidateCreate(request(t), ofQueue("payments"))

	assert.NoError(t, err)
}

func TestAnUpdateMayKeepAParameterThatIsNoLongerAllowedButNotTakeAnother(t *testing.T) {
	live := store(t, queueProfile("orders"), deployment(2))
	v := validator(t, live, live)
	old := ofQueue("gone")
	update := func(change func(*v1alpha1.AutoScaler)) error {
		a := old.DeepCopy()
		change(a)
		_, err := v.ValidateUpdate(request(t, update), old, a)
		return err
	}

	assert.NoError(t, update(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas++ }))
	assert.NoError(t, update(func(a *v1alpha1.AutoScaler) { a.Spec.Metrics[0].Parameters["queue"] = "orders" }))
	assert.ErrorContains(t, update(func(a *v1alpha1.AutoScaler) { a.Spec.Metrics[0].Parameters["queue"] = "other" }), "parameters[queue]")
}

func TestTheTimesOfSchedulesAreCheckedAtAdmission(t *testing.T) {
	live := store(t, profile(), deployment(2))
	v := validator(t, live, live)
	a := scheduled(v1alpha1.Schedule{Freeze: v1alpha1.FreezeAll})
	a.Spec.Schedules[0].Start, a.Spec.Schedules[0].TimeZone = "@daily", "Mars/Olympus"

	_, err := v.ValidateCreate(request(t), a)

	assert.ErrorContains(t, err, "spec.schedules[0].start")
	assert.ErrorContains(t, err, "spec.schedules[0].timeZone")
}
