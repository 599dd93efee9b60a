package explain

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

func TestAnOperatorThatDoesNotLookIsToldOf(t *testing.T) {
	for name, tc := range map[string]struct {
		load    float64
		change  func(*v1alpha1.AutoScaler)
		after   time.Duration
		silent  bool
		overdue int32
	}{
		"a scale-down pends, and it may have looked": {400, nil, time.Minute, false, 0},
		"the memory of what pends is not written":    {400, nil, 80 * time.Second, true, 0},
		"a scale-down is overdue":                    {400, nil, 10 * time.Minute, true, 7},
		"nothing pends: the status may be old":       {900, nil, 24 * time.Hour, false, 0},
		"paused":                                     {400, func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }, time.Hour, false, 0},
		"it may write nothing": {400, func(a *v1alpha1.AutoScaler) {
			a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAbleToScale, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotBound}}
		}, time.Hour, false, 0},
		"a scale-up has been made, and the load may have gone": {1500, nil, 90 * time.Second, false, 0},
		"a scale-up is overdue":                                {1500, nil, 3 * time.Minute, true, 15},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPast(t, nil)
			p.looks(900, 5*time.Minute)
			p.look(tc.load)
			if tc.change != nil {
				tc.change(p.autoscaler)
			}

			gone, overdue, err := silence(p.autoscaler, p.profiles, p.now.Add(tc.after))

			require.NoError(t, err)
			assert.Equal(t, tc.silent, gone > 0)
			if tc.silent {
				assert.Equal(t, tc.after, gone)
			}
			if tc.overdue == 0 {
				assert.Nil(t, overdue)
			} else if assert.NotNil(t, overdue) {
				assert.Equal(t, tc.overdue, overdue.Replicas)
				assert.Positive(t, overdue.Late)
			}
		})
	}
}

func TestSilenceIsToldFirst(t *testing.T) {
	v := &View{
		Namespace: "production", AutoScaler: "web", Target: "web", PollSeconds: 15, SilentSeconds: 70,
		Deployment: &Deployment{Replicas: 9}, Next: []Move{{Replicas: 7, Late: 40 * time.Second}},
	}
	var out bytes.Buffer

	v.print(&out, noon, cli.Color{})

	assert.Regexp(t, `^The operator has not looked for 70s, and should each 15 s: it may be down. What follows holds once it is back.\n`, out.String())
	assert.Contains(t, out.String(), "Next        down to 7 once the operator is back, which has been due for 40s")
}

func TestWhatHasComeOfADecision(t *testing.T) {
	up := &v1alpha1.DecisionTrace{Current: 2, Result: 3}
	for want, v := range map[string]*View{
		"stay at 8":                         {Decision: &v1alpha1.DecisionTrace{Current: 8, Result: 8}},
		"from 2 up to 3":                    {Decision: up},
		"would go up from 2 to 3 (dry run)": {Decision: up, Still: v1alpha1.ReasonDryRun},
		"would go up from 2 to 3 (nothing is written: NotBound)":    {Decision: up, Still: v1alpha1.ReasonNotBound},
		"would go up from 2 to 3 (nothing is written: ScaleFailed)": {Decision: up, Still: v1alpha1.ReasonScaleFailed},
	} {
		assert.Equal(t, want, v.verdict())
	}
}

func TestTheLastWrite(t *testing.T) {
	a := &v1alpha1.AutoScaler{}
	assert.Nil(t, lastWrite(a))

	a.Status.AppliedReplicas, a.Status.LastSuccessfulScaleTime = new(int32(9)), new(metav1.NewTime(noon))
	assert.Equal(t, &Write{To: 9, Time: metav1.NewTime(noon)}, lastWrite(a))

	a.Status.LastDecision = &v1alpha1.DecisionTrace{Time: metav1.NewTime(noon), Current: 6, Result: 9}
	assert.Equal(t, new(int32(6)), lastWrite(a).From)

	a.Status.LastDecision = &v1alpha1.DecisionTrace{Time: metav1.NewTime(noon.Add(time.Minute)), Current: 9, Result: 9}
	a.Status.Memory = &v1alpha1.DecisionMemory{StepUp: &v1alpha1.StepMemory{Time: metav1.NewMicroTime(noon.Add(time.Millisecond)), Base: 5}}
	assert.Equal(t, new(int32(5)), lastWrite(a).From, "the step that began with it")
	a.Status.Memory.StepUp.Time = metav1.NewMicroTime(noon.Add(-5 * time.Second))
	assert.Nil(t, lastWrite(a).From, "the step began before it")

	var out bytes.Buffer
	(&View{LastWrite: &Write{From: new(int32(6)), To: 9, Time: metav1.NewTime(noon)}}).print(&out, noon.Add(4*time.Minute), cli.Color{})
	assert.Contains(t, out.String(), "Last write  from 6 to 9, 4m ago")
}

func TestAClaimThatWaitsIsNoOwner(t *testing.T) {
	a := &v1alpha1.AutoScaler{}
	a.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForRelease,
		Message: `stands by until that is gone: HorizontalPodAutoscaler "pay" already scales Deployment "pay"; delete it first`,
	}}
	assert.Equal(t, "HorizontalPodAutoscaler/pay", waitsFor(a))
	a.Status.Conditions[0].Message = ""
	assert.Equal(t, "another replica manager", waitsFor(a))
	a.Status.Conditions[0].Reason = v1alpha1.ReasonClaimHeld
	assert.Empty(t, waitsFor(a))

	var out bytes.Buffer
	(&View{Binding: &Binding{Owner: "pay", Mine: true, Phase: v1alpha1.PhaseContended, Epoch: 1, WaitsFor: "HorizontalPodAutoscaler/pay"}}).print(&out, noon, cli.Color{})
	assert.Contains(t, out.String(), "Owner       claimed by this AutoScaler, which waits for HorizontalPodAutoscaler/pay to go (epoch 1)\n")
}

func TestTheNameOfAnAutoScaler(t *testing.T) {
	for _, given := range []string{"web", "autoscaler/web", "asc/web", "AutoScalers/web", "autoscaler.autoscale.example.com/web", "autoscalers.v1alpha1.autoscale.example.com/web"} {
		name, err := nameOf(given)
		require.NoError(t, err, given)
		assert.Equal(t, "web", name, given)
	}
	for _, given := range []string{"deployment/web", "autoscaler/", "autoscaler/a/b", "autoscaler.example.com/web"} {
		_, err := nameOf(given)
		assert.ErrorContains(t, err, "as in autoscaler/web", given)
	}
}
