package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

func rated(n int32, period time.Duration) *scaling.Policy {
	p := perReplica100(scaling.Behavior{UpRate: scaling.Rate{MaxReplicas: n, Period: period}})
	p.MaxReplicas = 1000
	return p
}

func TestNoMoreThanTheRateIsAddedInAnyPeriod(t *testing.T) {
	l := newLoop(rated(4, time.Minute), 2)
	d := l.at(0, valid(2000))
	assert.Equal(t, int32(6), d.Replicas)
	assert.Equal(t, int32(20), d.Desired)
	assert.Equal(t, scaling.RuleScaleUpRate, d.Rule)
	for at := poll; at < time.Minute; at += poll {
		require.Equal(t, int32(6), l.at(at, valid(2000)).Replicas, "at %s", at)
	}
	assert.Equal(t, int32(6), l.at(time.Minute-time.Microsecond, valid(2000)).Replicas)
	assert.Equal(t, int32(10), l.at(time.Minute, valid(2000)).Replicas)
}

func TestWhatIsLeftOfARateCanBeUsedInParts(t *testing.T) {
	l := newLoop(rated(4, time.Minute), 2)
	assert.Equal(t, int32(3), l.at(0, valid(300)).Replicas)
	assert.Equal(t, int32(5), l.at(20*time.Second, valid(500)).Replicas)
	assert.Equal(t, int32(6), l.at(40*time.Second, valid(900)).Replicas)
	assert.Equal(t, int32(7), l.at(60*time.Second, valid(900)).Replicas, "the first has expired")
	assert.Equal(t, int32(9), l.at(80*time.Second, valid(900)).Replicas, "and the second")
}

func TestARateIsNotGivenBackByAScaleDownNorUsedUpByAHuman(t *testing.T) {
	l := newLoop(rated(4, time.Minute), 6)
	require.Equal(t, int32(10), l.at(0, valid(1000)).Replicas)
	require.Equal(t, int32(6), l.at(poll, valid(600)).Replicas)
	assert.Equal(t, int32(6), l.at(2*poll, valid(1000)).Replicas)

	l = newLoop(rated(4, time.Minute), 6)
	require.Equal(t, int32(8), l.at(0, valid(800)).Replicas)
	l.current = 20
	assert.Equal(t, int32(22), l.at(poll, valid(5000)).Replicas)
}

func TestStepAndRateLimitTogether(t *testing.T) {
	p := rated(6, time.Minute)
	p.Metrics[0].Behavior.UpMaxStep = 4
	l := newLoop(p, 2)
	var seen []int32
	var rules []scaling.Rule
	for at := time.Duration(0); at <= time.Minute+poll; at += poll {
		d := l.at(at, valid(2000))
		seen, rules = append(seen, d.Replicas), append(rules, d.Rule)
	}
	assert.Equal(t, []int32{6, 8, 8, 8, 12, 14}, seen)
	assert.Equal(t, []scaling.Rule{
		scaling.RuleScaleUpStep, scaling.RuleScaleUpRate, scaling.RuleScaleUpRate, scaling.RuleScaleUpRate,
		scaling.RuleScaleUpRate, scaling.RuleScaleUpRate, // alike: the longer wait is told
	}, rules)
}

func TestEachMetricHasItsOwnRate(t *testing.T) {
	p := perReplica100(
		scaling.Behavior{UpRate: scaling.Rate{MaxReplicas: 1, Period: time.Hour}},
		scaling.Behavior{UpRate: scaling.Rate{MaxReplicas: 5, Period: time.Minute}},
	)
	l := newLoop(p, 2)
	assert.Equal(t, int32(7), l.at(0, valid(2000), valid(2000)).Replicas, "the faster one wins")
	assert.Equal(t, int32(7), l.at(time.Minute, valid(2000), valid(300)).Replicas, "the slower one's hour is used up")
	assert.Equal(t, int32(12), l.at(time.Minute, valid(2000), valid(2000)).Replicas, "the faster one's minute is over to the microsecond")
}

func TestAnUnrecordedScaleUpCountsAgainstTheRate(t *testing.T) {
	p := rated(4, time.Minute)
	_, m := scaling.Decide(p, observe(start, 6, valid(600)), scaling.Memory{})
	m = m.Discovered(start, 3, 6)
	decide := func(after time.Duration) int32 {
		d, _ := scaling.Decide(p, observe(start.Add(after), 6, valid(2000)), m)
		return d.Replicas
	}
	assert.Equal(t, int32(7), decide(poll), "three of four are used up")
	assert.Equal(t, int32(10), decide(time.Minute))
	_, fresh := scaling.Decide(p, observe(start, 6, valid(600)), scaling.Memory{})
	assert.Equal(t, [scaling.MaxUps]scaling.Up{}, fresh.Discovered(start, 9, 6).Ups, "a scale-down adds nothing")
	assert.Equal(t, int32(math.MaxInt32), fresh.Discovered(start, math.MinInt32, math.MaxInt32).Ups[0].Added)
}

func TestAMemoryOfUpsThatIsFullNeverGrantsMore(t *testing.T) {
	p := rated(2*scaling.MaxUps, time.Hour)
	l := newLoop(p, 2)
	for i := range 2 * scaling.MaxUps {
		at := time.Duration(i) * poll
		require.Equal(t, int32(3+i), l.at(at, valid(float64(100*(3+i)))).Replicas)
	}
	require.Equal(t, int32(2*scaling.MaxUps), total(&l.memory), "none is forgotten")

	// The ups expire one after the other, none before its hour.
	const full = int32(2 + 2*scaling.MaxUps)
	for at := 10 * time.Minute; at < time.Hour+10*time.Minute; at += poll {
		d := l.at(at, valid(100_000))
		expired := max(0, min(int32((at-time.Hour)/poll)+1, 2*scaling.MaxUps))
		if at < time.Hour {
			expired = 0
		}
		require.LessOrEqual(t, d.Replicas, full+expired, "at %s", at)
		require.Equal(t, scaling.RuleScaleUpRate, d.Rule)
	}
	assert.Equal(t, full+2*scaling.MaxUps, l.current, "and all are granted again")
}

// total is the number of replicas of all ups that are remembered.
func total(m *scaling.Memory) (n int32) {
	for _, up := range m.Ups {
		n += up.Added
	}
	return n
}

func TestUpsAreKeptOnlyForARateThatCountsThem(t *testing.T) {
	l := newLoop(rated(4, time.Minute), 2)
	l.at(0, valid(500))
	l.at(poll, valid(500))
	require.NotZero(t, l.memory.Ups[0])
	l.at(time.Minute, valid(500))
	assert.Zero(t, l.memory.Ups, "after its period")

	l = newLoop(perReplica100(scaling.Behavior{}), 2)
	l.at(0, valid(500))
	l.at(poll, valid(500))
	assert.Zero(t, l.memory.Ups, "without a rate")
}

// Whatever wakes the policy and whatever it is told, no period sees more added than
// the rate; and an up is never counted for longer than a quarter above its period.
func TestPropertyTheRateHoldsInEveryPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int32Range(1, 40).Draw(t, "limit")
		period := time.Duration(rapid.Int64Range(1, 3600).Draw(t, "period")) * time.Second
		p := rated(limit, period)
		l := newLoop(p, 2)
		var writes []scaling.Up
		now := time.Duration(0)
		for range rapid.IntRange(1, 120).Draw(t, "evaluations") {
			before := l.current
			demand := rapid.OneOf(rapid.Int32Range(1, 60), rapid.Just(before+1)).Draw(t, "demand")
			d := l.at(now, valid(float64(demand)*100))
			if l.current > before {
				writes = append(writes, scaling.Up{At: int64(now), Added: l.current - before})
			}
			if d.Rule == scaling.RuleScaleUpRate {
				require.GreaterOrEqual(t, addedSince(writes, int64(now-period-period/4)), limit, "held longer than a quarter above the period")
			}
			require.LessOrEqual(t, addedSince(writes, int64(now-period)), limit, "in the period that ends at %s", now)
			step := rapid.OneOf(rapid.Int64Range(0, int64(period)/40), rapid.Int64Range(0, int64(period)/4)).Draw(t, "step")
			now += time.Duration(step).Truncate(time.Microsecond)
		}
	})
}

// addedSince is what was added after a time.
func addedSince(writes []scaling.Up, since int64) (n int32) {
	for _, w := range writes {
		if w.At > since {
			n += w.Added
		}
	}
	return n
}
