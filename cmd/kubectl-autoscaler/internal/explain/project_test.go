package explain

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/test/builders"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// past is an operator that looks at a Deployment every 15 s.
type past struct {
	t          *testing.T
	autoscaler *v1alpha1.AutoScaler
	profiles   []*v1alpha1.MetricProfile
	memory     scaling.Memory
	current    int32
	now        time.Time
	decision   scaling.Decision
}

func newPast(t *testing.T, change func(*v1alpha1.AutoScaler)) *past {
	t.Helper()
	a := builders.MakeAutoScaler("production", "web").Metric("total", "total", "100").Steps(4, 2).Window(300).DownInterval(60).Obj()
	if change != nil {
		change(a)
	}
	return &past{t: t, autoscaler: a, profiles: []*v1alpha1.MetricProfile{builders.MakeMetricProfile("total").Obj()}, current: 2, now: noon}
}

// look evaluates once, and leaves a status behind as the operator does.
func (p *past) look(load float64) {
	p.t.Helper()
	policy, schedule, err := spec.Policy(p.autoscaler, p.profiles, p.now)
	require.NoError(p.t, err)
	validity, reason := scaling.Valid, ""
	if load < 0 {
		validity, reason = scaling.Invalid, "NoData"
	}
	o := &scaling.Observation{Now: p.now, Target: "d", Current: p.current, Samples: []scaling.Sample{{Value: max(load, 0), Validity: validity, Reason: reason}}}
	p.decision, p.memory = scaling.Decide(&policy, o, p.memory)
	trace := spec.Trace(&policy, schedule, o, &p.decision)
	if p.decision.Replicas != p.current {
		p.memory = p.memory.Scaled(p.now, p.current, p.decision.Replicas, policy.PollInterval)
		p.current = p.decision.Replicas
	}
	s := &p.autoscaler.Status
	s.TargetUID, s.TargetReplicas, s.LastDecision = types.UID("d"), new(p.current), trace
	s.Memory = spec.MemoryStatus(&p.memory, len(policy.Metrics))
}

// looks goes on for a time.
func (p *past) looks(load float64, long time.Duration) {
	p.t.Helper()
	for end := p.now.Add(long); p.now.Before(end); p.now = p.now.Add(15 * time.Second) {
		p.look(load)
	}
}

func TestWhatIsForetoldIsWhatThenHappens(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AutoScaler){
		"as it is":       nil,
		"with tolerance": func(a *v1alpha1.AutoScaler) { a.Spec.Behavior.ToleranceDown = "0.1" },
		"with a window of the way up": func(a *v1alpha1.AutoScaler) {
			a.Spec.Behavior.ScaleUpStabilizationSeconds = new(int32(60))
		},
		"with a cap that begins": func(a *v1alpha1.AutoScaler) {
			a.Spec.Schedules = []v1alpha1.Schedule{{Name: "night", Start: "10 12 * * *", TimeZone: "UTC", DurationSeconds: 3600, MaxReplicas: new(int32(3))}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPast(t, change)
			p.looks(900, 5*time.Minute)
			p.looks(400, 2*time.Minute+15*time.Second)

			moves, err := foretell(p.autoscaler, p.profiles, p.now)
			require.NoError(t, err)
			require.NotEmpty(t, moves)

			began := p.now
			for _, m := range moves {
				if m.In > 2*time.Hour {
					break // the cap of tomorrow
				}
				before := p.current
				for p.current == before {
					p.look(400)
					p.now = p.now.Add(time.Second)
					require.Less(t, p.now.Sub(began), 2*time.Hour)
				}
				assert.Equal(t, m.Replicas, p.current)
				assert.Equal(t, m.In, p.now.Add(-time.Second).Sub(began))
			}
		})
	}
}

func TestNothingIsForetoldWhereNothingWillHappen(t *testing.T) {
	p := newPast(t, nil)
	p.looks(900, 5*time.Minute)

	moves, err := foretell(p.autoscaler, p.profiles, p.now)

	require.NoError(t, err)
	assert.Empty(t, moves)
	moves, err = foretell(builders.MakeAutoScaler("production", "web").Obj(), nil, noon)
	require.NoError(t, err)
	assert.Empty(t, moves, "nothing is decided yet")
}

func TestAFallbackIsForetold(t *testing.T) {
	p := newPast(t, func(a *v1alpha1.AutoScaler) {
		a.Spec.Fallback = &v1alpha1.Fallback{FloorReplicas: 12, AfterSeconds: 600}
	})
	p.looks(900, 5*time.Minute)
	p.looks(-1, time.Minute)

	moves, err := foretell(p.autoscaler, p.profiles, p.now)

	require.NoError(t, err)
	require.Len(t, moves, 1)
	assert.Equal(t, int32(12), moves[0].Replicas)
	assert.InDelta(t, 540, moves[0].In.Seconds(), 1)
}

func TestWhatIsToldToAPerson(t *testing.T) {
	p := newPast(t, nil)
	p.looks(900, 5*time.Minute)
	p.looks(400, 2*time.Minute+15*time.Second)
	moves, err := foretell(p.autoscaler, p.profiles, p.now)
	require.NoError(t, err)
	v := &View{
		Namespace: "production", AutoScaler: "web", Target: "web", MinReplicas: 2, MaxReplicas: 20, PollSeconds: 15,
		Deployment: &Deployment{Replicas: 9, Ready: 8}, Decision: p.autoscaler.Status.LastDecision, Next: moves,
		Binding:    &Binding{Owner: "web", Mine: true, Phase: v1alpha1.PhaseHeld, Epoch: 3, Guard: v1alpha1.GuardClosed, Indexed: true},
		Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Managing", Message: "it is", LastTransitionTime: metav1.NewTime(noon)}},
	}
	var out bytes.Buffer

	v.print(&out, p.now, cli.Color{})

	text := out.String()
	assert.Contains(t, text, "9 wanted, 8 ready")
	assert.Contains(t, text, "this AutoScaler, Held (epoch 3)")
	assert.Regexp(t, `The last decision, in the status for \d+s: stay at 9`, text)
	assert.Regexp(t, `total +Valid +4 +4 +4 +9 +9 +ScaleDownStabilization`, text)
	assert.Regexp(t, `Next +down to 7 in 2m\d+s, down to 5 in \d+m`, text)
	assert.Regexp(t, `Ready +True +7m\d+s +Managing +it is`, text)

	out.Reset()
	v.Still, v.Next, v.Unknown = "Paused", moves[:1], ""
	v.print(&out, p.now, cli.Color{})
	assert.Contains(t, out.String(), "nothing is written (Paused); it would go down to 7")
}
