package scaling_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

const poll = 15 * time.Second

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// perReplica100 is a policy of 2 to 20 replicas that bear 100 each.
func perReplica100(behaviors ...scaling.Behavior) *scaling.Policy {
	p := &scaling.Policy{MinReplicas: 2, MaxReplicas: 20, PollInterval: poll}
	for i, b := range behaviors {
		p.Metrics = append(p.Metrics, scaling.Metric{
			Name: string(rune('a' + i)), Key: uint64(i + 1), TargetPerReplica: 100, Behavior: b,
		})
	}
	return p
}

func valid(v float64) scaling.Sample {
	return scaling.Sample{Value: v, Validity: scaling.Valid}
}

func partial(v float64) scaling.Sample {
	return scaling.Sample{Value: v, Validity: scaling.ScaleUpOnly, Reason: "PartialResponse"}
}

var failed = scaling.Sample{Reason: "Timeout", Message: "no answer"}

func observe(at time.Time, current int32, samples ...scaling.Sample) *scaling.Observation {
	return over(current, &scaling.Observation{Now: at, Target: "uid", Current: current, Samples: samples})
}

// over has every sample taken over so many Ready replicas.
func over(ready int32, o *scaling.Observation) *scaling.Observation {
	o.Samples = slices.Clone(o.Samples)
	for i := range o.Samples {
		o.Samples[i].Ready = ready
	}
	return o
}

// loop is a closed loop: it evaluates, and every write succeeds.
type loop struct {
	policy  *scaling.Policy
	memory  scaling.Memory
	now     time.Time
	current int32
	ready   *int32 // nil: all are
	writes  int
}

func newLoop(p *scaling.Policy, current int32) *loop {
	return &loop{policy: p, now: start, current: current}
}

// at moves the clock to so long after the start and evaluates.
func (l *loop) at(since time.Duration, samples ...scaling.Sample) scaling.Decision {
	l.now = start.Add(since)
	o := observe(l.now, l.current, samples...)
	if l.ready != nil {
		over(*l.ready, o)
	}
	d, m := scaling.Decide(l.policy, o, l.memory)
	l.memory = m
	if d.Replicas != l.current {
		l.memory = m.Scaled(l.now, l.current, d.Replicas, l.policy.PollInterval)
		l.current = d.Replicas
		l.writes++
	}
	return d
}

// run evaluates every poll interval from one time to another, both included.
func (l *loop) run(from, to time.Duration, samples ...scaling.Sample) {
	for t := from; t <= to; t += l.policy.PollInterval {
		l.at(t, samples...)
	}
}

// downAt evaluates every step and returns when replicas first fell.
func (l *loop) downAt(t *testing.T, from, step, limit time.Duration, samples ...scaling.Sample) time.Duration {
	t.Helper()
	before := l.current
	for at := from; at <= limit; at += step {
		l.at(at, samples...)
		if l.current < before {
			return at
		}
	}
	require.FailNow(t, "no scale-down", "between %s and %s", from, limit)
	return 0
}

// upAt evaluates every step within an hour and returns when replicas first rose.
func (l *loop) upAt(t *testing.T, from, step time.Duration, samples ...scaling.Sample) time.Duration {
	t.Helper()
	before := l.current
	for at := from; at <= time.Hour; at += step {
		l.at(at, samples...)
		if l.current > before {
			return at
		}
	}
	require.FailNow(t, "no scale-up", "between %s and an hour", from)
	return 0
}
