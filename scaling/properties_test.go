package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

// boundedDemand is the highest demand of the usable metrics within the bounds.
func boundedDemand(p *scaling.Policy, d *scaling.Decision) (demand int32, usable bool) {
	for i := range p.Metrics {
		if d.Metrics[i].Validity != scaling.Invalid {
			demand, usable = max(demand, d.Metrics[i].Bounded), true
		}
	}
	return demand, usable
}

// checkInvariants is what holds for every input.
func checkInvariants(t *rapid.T, s scene) {
	p, o := s.policy, s.observation
	d, next := scaling.Decide(p, o, s.memory)

	demand, usable := boundedDemand(p, &d)
	switch {
	case !usable && d.Rule == scaling.RuleFallbackFloor:
		require.Greater(t, d.Replicas, o.Current, "the fallback never lowers")
		require.LessOrEqual(t, d.Replicas, max(p.MinReplicas, min(p.Fallback.FloorReplicas, p.MaxReplicas)))
	case !usable && o.Current > 0 && o.Current < p.MinReplicas && d.Rule != scaling.RuleFrozen:
		require.Equal(t, scaling.RuleBelowMinimum, d.Rule)
		require.GreaterOrEqual(t, d.Replicas, o.Current, "none usable: the minimum is restored")
		require.LessOrEqual(t, d.Replicas, p.MinReplicas)
	case !usable:
		require.Equal(t, o.Current, d.Replicas, "none usable: hold")
		require.Zero(t, d.Recommended)
	default:
		require.GreaterOrEqual(t, d.Replicas, min(o.Current, demand), "between current and demand")
		require.LessOrEqual(t, d.Replicas, max(o.Current, demand), "between current and demand")
		require.GreaterOrEqual(t, d.Desired, min(o.Current, demand))
		require.LessOrEqual(t, d.Desired, max(o.Current, demand))
	}
	if o.Current >= p.MinReplicas && o.Current <= p.MaxReplicas {
		require.GreaterOrEqual(t, d.Replicas, p.MinReplicas)
		require.LessOrEqual(t, d.Replicas, p.MaxReplicas)
	}
	if d.Degraded() {
		require.GreaterOrEqual(t, d.Replicas, o.Current, "nothing is removed while a metric is not valid")
		require.False(t, d.PendingDown)
	}
	switch p.Freeze {
	case scaling.FreezeAll:
		require.Equal(t, o.Current, d.Replicas, "frozen")
	case scaling.FreezeScaleDown:
		require.GreaterOrEqual(t, d.Replicas, o.Current, "frozen")
	case scaling.FreezeNone:
		require.NotEqual(t, scaling.RuleFrozen, d.Rule)
	}
	if usable && d.Rule == scaling.RuleNone {
		require.Equal(t, d.Recommended, d.Replicas, "a difference has a rule")
	}
	if d.PendingDown {
		require.Less(t, demand, d.Replicas)
	}
	if d.PendingUp {
		require.Greater(t, demand, d.Replicas)
	}
	checkMemory(t, &next, o.Now.UnixMicro())
	again, same := scaling.Decide(p, o, s.memory)
	require.Equal(t, d, again, "deterministic")
	require.Equal(t, next, same, "deterministic")
	repeated, kept := scaling.Decide(p, o, next)
	require.Equal(t, d.Replicas, repeated.Replicas, "repeating an evaluation changes nothing")
	require.Equal(t, next, kept, "repeating an evaluation changes nothing")
}

// checkMemory is what holds of a memory after a decision, whatever it was before.
func checkMemory(t require.TestingT, next *scaling.Memory, now int64) {
	for _, at := range []int64{next.Observed, next.LastDown, next.Up.At, next.Down.At, next.AllInvalidSince} {
		require.True(t, at >= 0 && at <= now)
	}
	for i := range next.Windows {
		for _, h := range []*scaling.History{&next.Windows[i].Down, &next.Windows[i].Up} {
			require.True(t, h.Since >= 0 && h.Since <= now)
			for j, at := range h.At {
				require.True(t, at >= 0 && at <= now && h.Replicas[j] >= 0)
			}
		}
	}
	for i, up := range next.Ups {
		require.Equal(t, up.At == 0, up.Added == 0)
		require.True(t, up.At >= 0 && up.At <= now && up.Added >= 0)
		require.True(t, i == 0 || up.At == 0 || next.Ups[i-1].At > 0 && next.Ups[i-1].At <= up.At, "in order, without holes")
	}
}

func TestPropertyInvariantsHoldForEveryInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkInvariants(t, drawScene(t)) })
}

func FuzzDecide(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkInvariants(t, drawScene(t)) }))
}

func TestPropertyMoreLoadNeverMeansFewerReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		i := rapid.IntRange(0, len(s.policy.Metrics)-1).Draw(t, "metric")
		for len(s.observation.Samples) <= i {
			s.observation.Samples = append(s.observation.Samples, valid(0))
		}
		low := rapid.Float64Range(0, 1e7).Draw(t, "low")
		high := rapid.Float64Range(low, 1e8).Draw(t, "high")
		load := &s.observation.Samples[i].Value
		if s.policy.Metrics[i].Semantics == scaling.Backlog && rapid.Bool().Draw(t, "arrivals") {
			load = &s.observation.Samples[i].ArrivalRate
		}
		*load = low
		less, _ := scaling.Decide(s.policy, s.observation, s.memory)
		*load = high
		more, _ := scaling.Decide(s.policy, s.observation, s.memory)
		assert.GreaterOrEqual(t, more.Recommended, less.Recommended)
		assert.GreaterOrEqual(t, more.Desired, less.Desired)
		assert.GreaterOrEqual(t, more.Replicas, less.Replicas)
	})
}

func TestPropertyConstantLoadReachesAFixpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.PollInterval = time.Duration(rapid.Int64Range(int64(time.Second), int64(10*time.Minute)).Draw(t, "pollInterval"))
		samples := make([]scaling.Sample, len(p.Metrics))
		p.Freeze = scaling.FreezeNone
		for i := range samples {
			m := &p.Metrics[i]
			samples[i] = valid(rapid.Float64Range(0, 200).Draw(t, "load") * m.TargetPerReplica)
			m.Semantics, m.Behavior.ToleranceUp, m.Behavior.ToleranceDown = scaling.Total, 0, 0
			m.Behavior.DownMinInterval = min(m.Behavior.DownMinInterval, 2*p.PollInterval)
			m.Behavior.UpRate.Period = min(m.Behavior.UpRate.Period, 2*p.PollInterval)
		}
		l := newLoop(p, rapid.Int32Range(1, 120).Draw(t, "current"))
		d := l.at(0, samples...)
		demand, _ := boundedDemand(p, &d)
		begin, last := d.Replicas, d.Replicas
		horizon := 3*time.Hour + 400*p.PollInterval
		for at := p.PollInterval; at <= horizon; at += p.PollInterval {
			d = l.at(at, samples...)
			if demand >= begin {
				require.GreaterOrEqual(t, d.Replicas, last, "on the way up")
			} else {
				require.LessOrEqual(t, d.Replicas, last, "on the way down")
			}
			last = d.Replicas
			if last == demand && at > time.Hour+p.PollInterval {
				break
			}
		}
		require.Equal(t, demand, l.current, "the demand is reached")
		writes := l.writes
		for i := range 3 {
			l.at(l.now.Sub(start)+time.Duration(i+1)*p.PollInterval, samples...)
		}
		require.Equal(t, writes, l.writes, "and then nothing is written")
		require.False(t, d.PendingDown || d.PendingUp)
	})
}
