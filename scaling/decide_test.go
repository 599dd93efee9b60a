package scaling_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

func TestOneMetricWithoutHistory(t *testing.T) {
	cases := map[string]struct {
		value       float64
		current     int32
		recommended int32
		replicas    int32
		rule        scaling.Rule
	}{
		"900 at 100 each is 9":               {900, 3, 9, 9, scaling.RuleNone},
		"the current count takes no part":    {900, 6, 9, 9, scaling.RuleNone},
		"a part of a replica is a whole":     {901, 9, 10, 10, scaling.RuleNone},
		"demand above the maximum is cut":    {10_000, 9, 100, 20, scaling.RuleMaxReplicas},
		"no load is the minimum":             {0, 3, 0, 2, scaling.RuleMinReplicas},
		"minus zero is zero":                 {math.Copysign(0, -1), 3, 0, 2, scaling.RuleMinReplicas},
		"little load is the minimum":         {1, 3, 1, 2, scaling.RuleMinReplicas},
		"a denormal load is one replica":     {5e-324 * 1000, 3, 1, 2, scaling.RuleMinReplicas},
		"demand that is met changes nothing": {900, 9, 9, 9, scaling.RuleNone},
		"rounding noise adds no replica":     {300.00000004, 3, 3, 3, scaling.RuleNone},
		"more than noise adds one":           {300.0001, 3, 4, 4, scaling.RuleNone},
		"below the minimum goes up to it":    {0, 1, 0, 2, scaling.RuleMinReplicas},
		"above the maximum goes down to it":  {5000, 30, 50, 20, scaling.RuleMaxReplicas},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := scaling.Decide(perReplica100(scaling.Behavior{}), observe(start, c.current, valid(c.value)), scaling.Memory{})
			assert.Equal(t, c.recommended, d.Recommended, "recommended")
			assert.Equal(t, c.replicas, d.Replicas, "replicas")
			assert.Equal(t, c.replicas, d.Desired, "desired")
			assert.Equal(t, c.rule.String(), d.Rule.String())
			assert.False(t, d.Degraded())
			assert.False(t, d.PendingDown)
		})
	}
}

func TestValuesThatAreNoLoadAreInvalidWhateverTheSampleClaims(t *testing.T) {
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -5e-324} {
		for _, claim := range []scaling.Validity{scaling.Valid, scaling.ScaleUpOnly, scaling.Validity(99)} {
			d, _ := scaling.Decide(perReplica100(scaling.Behavior{}),
				observe(start, 10, scaling.Sample{Value: value, Validity: claim}), scaling.Memory{})
			assert.Equal(t, int32(10), d.Replicas, "%v", value)
			assert.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule)
			assert.Equal(t, scaling.MetricTrace{Reason: scaling.ReasonInvalidValue}, d.Metrics[0])
			assert.True(t, d.Degraded())
		}
	}
	d, _ := scaling.Decide(perReplica100(scaling.Behavior{}),
		observe(start, 10, scaling.Sample{Value: 100, Validity: 99}), scaling.Memory{})
	assert.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule, "an unknown validity is none")
}

func TestSeveralMetrics(t *testing.T) {
	cases := map[string]struct {
		current     int32
		samples     []scaling.Sample
		recommended int32
		desired     int32
		replicas    int32
		rule        scaling.Rule
		validCount  int
	}{
		"the highest wins":                        {5, []scaling.Sample{valid(300), valid(800)}, 8, 8, 8, scaling.RuleNone, 2},
		"the highest wins on the way down":        {9, []scaling.Sample{valid(300), valid(800)}, 8, 8, 8, scaling.RuleNone, 2},
		"a failure lets the others scale up":      {8, []scaling.Sample{valid(1200), failed}, 12, 12, 12, scaling.RuleNone, 1},
		"a failure holds a scale-down":            {8, []scaling.Sample{valid(200), failed}, 2, 8, 8, scaling.RuleSomeMetricsInvalid, 1},
		"the first may be the one that fails":     {8, []scaling.Sample{failed, valid(200)}, 2, 8, 8, scaling.RuleSomeMetricsInvalid, 1},
		"a failure holds what is met":             {8, []scaling.Sample{valid(800), failed}, 8, 8, 8, scaling.RuleNone, 1},
		"a missing sample is a failure":           {8, []scaling.Sample{valid(200)}, 2, 8, 8, scaling.RuleSomeMetricsInvalid, 1},
		"surplus samples are ignored":             {8, []scaling.Sample{valid(200), valid(200), valid(900)}, 2, 2, 2, scaling.RuleNone, 2},
		"a partial answer scales up":              {8, []scaling.Sample{valid(200), partial(1200)}, 12, 12, 12, scaling.RuleNone, 1},
		"a partial answer holds a scale-down":     {8, []scaling.Sample{valid(200), partial(300)}, 3, 8, 8, scaling.RuleSomeMetricsInvalid, 1},
		"all failures hold":                       {8, []scaling.Sample{failed, failed}, 0, 8, 8, scaling.RuleAllMetricsInvalid, 0},
		"all failures hold above the maximum":     {25, []scaling.Sample{failed, failed}, 0, 25, 25, scaling.RuleOutOfBounds, 0},
		"all failures restore the minimum":        {1, []scaling.Sample{failed, failed}, 0, 2, 2, scaling.RuleBelowMinimum, 0},
		"a failure holds above the maximum":       {25, []scaling.Sample{valid(200), failed}, 2, 25, 25, scaling.RuleOutOfBounds, 1},
		"a failure lets the minimum be restored":  {1, []scaling.Sample{valid(0), failed}, 0, 2, 2, scaling.RuleMinReplicas, 1},
		"only partial answers still scale up":     {8, []scaling.Sample{partial(900), partial(100)}, 9, 9, 9, scaling.RuleNone, 0},
		"only partial answers do not scale down":  {8, []scaling.Sample{partial(100), partial(100)}, 1, 8, 8, scaling.RuleSomeMetricsInvalid, 0},
		"demand above the cap is told by its own": {8, []scaling.Sample{valid(5000), valid(2000)}, 50, 20, 20, scaling.RuleMaxReplicas, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, _ := scaling.Decide(perReplica100(scaling.Behavior{}, scaling.Behavior{}), observe(start, c.current, c.samples...), scaling.Memory{})
			assert.Equal(t, c.recommended, d.Recommended, "recommended")
			assert.Equal(t, c.desired, d.Desired, "desired")
			assert.Equal(t, c.replicas, d.Replicas, "replicas")
			assert.Equal(t, c.rule.String(), d.Rule.String())
			assert.Equal(t, c.validCount, d.ValidMetrics)
			assert.Equal(t, 2, d.TotalMetrics)
			assert.Equal(t, c.validCount < 2, d.Degraded())
		})
	}
}

func TestTheRuleIsThatOfTheMetricThatDecides(t *testing.T) {
	window := scaling.Behavior{DownStabilization: 5 * time.Minute}
	t.Run("the highest demand, cut by its step, and another at the result", func(t *testing.T) {
		d, _ := scaling.Decide(perReplica100(scaling.Behavior{}, scaling.Behavior{UpMaxStep: 1}),
			observe(start, 5, valid(600), valid(900)), scaling.Memory{})
		assert.Equal(t, int32(6), d.Replicas)
		assert.Equal(t, int32(9), d.Desired)
		assert.Equal(t, scaling.RuleScaleUpStep, d.Rule)
	})
	t.Run("the highest demand, cut by its step, and a lower one that wins", func(t *testing.T) {
		d, _ := scaling.Decide(perReplica100(scaling.Behavior{UpMaxStep: 1}, scaling.Behavior{}),
			observe(start, 5, valid(900), valid(800)), scaling.Memory{})
		assert.Equal(t, int32(8), d.Replicas)
		assert.Equal(t, scaling.RuleScaleUpStep, d.Rule)
	})
	t.Run("two that hold alike: that of the higher demand", func(t *testing.T) {
		memory := scaling.Memory{Target: "uid", LastDown: start.UnixMicro()}
		d, _ := scaling.Decide(perReplica100(scaling.Behavior{DownMinInterval: time.Hour}, window),
			observe(start, 9, valid(300), valid(400)), memory)
		assert.Equal(t, int32(9), d.Replicas)
		assert.Equal(t, scaling.RuleScaleDownStabilization, d.Rule)
	})
	t.Run("an interval that holds while another metric fails", func(t *testing.T) {
		memory := scaling.Memory{Target: "uid", LastDown: start.UnixMicro()}
		d, _ := scaling.Decide(perReplica100(scaling.Behavior{DownMinInterval: time.Hour}, window),
			observe(start, 9, valid(300), failed), memory)
		assert.Equal(t, int32(9), d.Replicas)
		assert.Equal(t, int32(9), d.Desired, "nothing is headed for below the current count")
		assert.Equal(t, scaling.RuleScaleDownMinInterval, d.Rule)
	})
	t.Run("the metric that holds, and one that could go lower", func(t *testing.T) {
		d, _ := scaling.Decide(perReplica100(scaling.Behavior{}, window),
			observe(start, 9, valid(400), valid(300)), scaling.Memory{})
		assert.Equal(t, int32(9), d.Replicas)
		assert.Equal(t, scaling.RuleScaleDownStabilization, d.Rule)
		assert.True(t, d.PendingDown)
		assert.Equal(t, scaling.MetricTrace{Validity: scaling.Valid, Raw: 4, Tolerated: 4, Bounded: 4, Stabilized: 4, Limited: 4}, d.Metrics[0])
		assert.Equal(t, scaling.MetricTrace{
			Validity: scaling.Valid, Raw: 3, Tolerated: 3, Bounded: 3, Stabilized: 9, Limited: 9, Rule: scaling.RuleScaleDownStabilization,
		}, d.Metrics[1])
	})
}

func TestPolicyThatCannotBeEvaluatedHolds(t *testing.T) {
	cases := map[string]func(*scaling.Policy){
		"minimum of 0":             func(p *scaling.Policy) { p.MinReplicas = 0 },
		"negative minimum":         func(p *scaling.Policy) { p.MinReplicas = -1 },
		"maximum below minimum":    func(p *scaling.Policy) { p.MaxReplicas = 1 },
		"no poll interval":         func(p *scaling.Policy) { p.PollInterval = 0 },
		"negative poll interval":   func(p *scaling.Policy) { p.PollInterval = -1 },
		"no metrics":               func(p *scaling.Policy) { p.Metrics = nil },
		"too many metrics":         func(p *scaling.Policy) { *p = *perReplica100(make([]scaling.Behavior, scaling.MaxMetrics+1)...) },
		"target of 0":              func(p *scaling.Policy) { p.Metrics[0].TargetPerReplica = 0 },
		"negative target":          func(p *scaling.Policy) { p.Metrics[0].TargetPerReplica = -100 },
		"target that is NaN":       func(p *scaling.Policy) { p.Metrics[0].TargetPerReplica = math.NaN() },
		"infinite target":          func(p *scaling.Policy) { p.Metrics[0].TargetPerReplica = math.Inf(1) },
		"fault in the last metric": func(p *scaling.Policy) { p.Metrics[1].TargetPerReplica = 0 },
		"negative step up":         func(p *scaling.Policy) { p.Metrics[0].Behavior.UpMaxStep = -1 },
		"negative step down":       func(p *scaling.Policy) { p.Metrics[0].Behavior.DownMaxStep = -1 },
		"negative window":          func(p *scaling.Policy) { p.Metrics[0].Behavior.DownStabilization = -1 },
		"window above a day":       func(p *scaling.Policy) { p.Metrics[0].Behavior.DownStabilization = scaling.MaxDownStabilization + 1 },
		"negative interval":        func(p *scaling.Policy) { p.Metrics[0].Behavior.DownMinInterval = -1 },
	}
	memory := scaling.Memory{Target: "uid", Observed: 5, LastDown: 4}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			p := perReplica100(scaling.Behavior{}, scaling.Behavior{})
			change(p)
			d, m := scaling.Decide(p, observe(start, 7, valid(900), valid(900)), memory)
			assert.Equal(t, scaling.Decision{Desired: 7, Replicas: 7, Rule: scaling.RuleInvalidPolicy}, d)
			assert.Equal(t, memory, m, "an evaluation that did not happen leaves no trace")
		})
	}
	d, _ := scaling.Decide(nil, observe(start, 7), memory)
	assert.Equal(t, scaling.RuleInvalidPolicy, d.Rule)
	d, _ = scaling.Decide(perReplica100(scaling.Behavior{}), nil, memory)
	assert.Equal(t, scaling.RuleSuspended, d.Rule)
}

func TestTenMetricsAreAllUsed(t *testing.T) {
	p := perReplica100(make([]scaling.Behavior, scaling.MaxMetrics)...)
	samples := make([]scaling.Sample, scaling.MaxMetrics)
	for i := range samples {
		samples[i] = valid(float64(100 * (i + 3)))
	}
	d, _ := scaling.Decide(p, observe(start, 5, samples...), scaling.Memory{})
	assert.Equal(t, int32(12), d.Replicas)
	assert.Equal(t, scaling.MaxMetrics, d.ValidMetrics)
}

func TestTimesBefore1970DoNotPanic(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: time.Hour, DownMinInterval: time.Hour, DownMaxStep: 1})
	for _, now := range []time.Time{{}, time.Unix(-1<<62, 0), time.Unix(1<<62, 0), time.Unix(0, 0)} {
		d, m := scaling.Decide(p, observe(now, 9, valid(100)), scaling.Memory{})
		assert.Equal(t, int32(9), d.Replicas, "%v", now)
		assert.Equal(t, scaling.RuleScaleDownStabilization, d.Rule)
		assert.Positive(t, m.Observed, "0 would mean never")
	}
	p.Metrics[0].Behavior.DownStabilization = 0
	d, _ := scaling.Decide(p, observe(time.Time{}, 9, valid(100)), scaling.Memory{})
	assert.Equal(t, int32(8), d.Replicas, "there was no scale-down within the hour")
}

func TestMemorySurvivesStorage(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{DownStabilization: time.Minute, DownMaxStep: 1, UpMaxStep: 2}, scaling.Behavior{}), 5)
	l.run(0, time.Minute, valid(900), valid(100))
	l.run(time.Minute+poll, 4*time.Minute, valid(100), valid(100))
	require.Less(t, l.current, int32(9))
	require.NotZero(t, l.memory.LastDown)
	stored, err := json.Marshal(l.memory)
	require.NoError(t, err)
	var restored scaling.Memory
	require.NoError(t, json.Unmarshal(stored, &restored))
	changed := restored != l.memory // as the controller compares them
	assert.False(t, changed)
}

func TestNamesOfRulesAndValidities(t *testing.T) {
	seen := map[string]bool{}
	assert.Equal(t, "Unknown", (scaling.RuleBelowMinimum + 1).String(), "the last one")
	for r := scaling.RuleNone; r <= scaling.RuleBelowMinimum; r++ {
		require.NotEmpty(t, r.String())
		assert.False(t, seen[r.String()], "%s is used twice", r)
		seen[r.String()] = true
	}
	assert.Equal(t, "ScaleDownMinInterval", scaling.RuleScaleDownMinInterval.String())
	assert.Equal(t, "Unknown", scaling.Rule(200).String())
	assert.Equal(t, "Invalid", scaling.Validity(0).String())
	assert.Equal(t, "ScaleUpOnly", scaling.ScaleUpOnly.String())
	assert.Equal(t, "Valid", scaling.Valid.String())
	assert.Equal(t, "Unknown", scaling.Validity(200).String())
}
