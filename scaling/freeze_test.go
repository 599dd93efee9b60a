package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

func TestAFreezeForbidsMoves(t *testing.T) {
	none, down, all := scaling.FreezeNone, scaling.FreezeScaleDown, scaling.FreezeAll
	cases := map[string]struct {
		freeze  scaling.Freeze
		current int32
		sample  scaling.Sample
		want    int32
		rule    scaling.Rule
	}{
		"none lets an up through":                               {none, 5, valid(900), 9, scaling.RuleNone},
		"none lets a down through":                              {none, 9, valid(500), 5, scaling.RuleNone},
		"of scale-downs lets an up through":                     {down, 5, valid(900), 9, scaling.RuleNone},
		"of scale-downs holds a down":                           {down, 9, valid(500), 9, scaling.RuleFrozen},
		"of scale-downs holds above the maximum (FC-23)":        {down, 40, valid(500), 40, scaling.RuleFrozen},
		"of scale-downs lets the minimum be restored":           {down, 1, valid(100), 2, scaling.RuleMinReplicas},
		"of scale-downs lets the floor be reached":              {down, 5, failed, 7, scaling.RuleFallbackFloor},
		"of all holds an up":                                    {all, 5, valid(900), 5, scaling.RuleFrozen},
		"of all holds a down":                                   {all, 9, valid(500), 9, scaling.RuleFrozen},
		"of all holds above the maximum (FC-23)":                {all, 40, valid(500), 40, scaling.RuleFrozen},
		"of all holds below the minimum":                        {all, 1, valid(900), 1, scaling.RuleFrozen},
		"of all holds the floor":                                {all, 5, failed, 5, scaling.RuleFrozen},
		"is not told where nothing would move":                  {all, 9, valid(900), 9, scaling.RuleNone},
		"is not told where another rule holds already":          {all, 9, failed, 9, scaling.RuleAllMetricsInvalid},
		"of scale-downs is not told where a rule holds an up":   {down, 20, valid(9000), 20, scaling.RuleMaxReplicas},
		"of all leaves a workload at 0 to whoever put it there": {all, 0, valid(900), 0, scaling.RuleSuspended},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := perReplica100(scaling.Behavior{})
			p.Freeze, p.Fallback = c.freeze, scaling.Fallback{FloorReplicas: 7}
			d, _ := scaling.Decide(p, observe(start, c.current, c.sample), scaling.Memory{})
			assert.Equal(t, c.want, d.Replicas)
			assert.Equal(t, c.rule.String(), d.Rule.String())
		})
	}
}

func TestADemandIsRecordedAndShownWhileItIsFrozen(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: usualWindow})
	p.Freeze = scaling.FreezeAll
	l := newLoop(p, 9)
	l.run(0, usualWindow, valid(400))
	d := l.at(usualWindow+poll, valid(400))
	require.Equal(t, int32(9), d.Replicas)
	assert.Equal(t, int32(4), d.Recommended)
	assert.Equal(t, int32(4), d.Desired, "where it heads for afterwards")
	assert.True(t, d.PendingDown)
	assert.Equal(t, int32(4), d.Metrics[0].Limited)
	p.Freeze = scaling.FreezeNone
	assert.Equal(t, int32(4), l.at(usualWindow+2*poll, valid(400)).Replicas, "no window is waited after the freeze")
}

func TestAFreezeEndsWithOneStepNotWithAllThatWereHeld(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 2, DownMaxStep: 2})
	p.Freeze = scaling.FreezeAll
	l := newLoop(p, 5)
	l.run(0, time.Hour, valid(2000))
	p.Freeze = scaling.FreezeNone
	assert.Equal(t, int32(7), l.at(time.Hour+poll, valid(2000)).Replicas)
}
