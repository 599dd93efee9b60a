package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

func TestPodsAreReadyWhenTheirTimeHasCome(t *testing.T) {
	p := newPods(2, 30*time.Second)
	p.scale(start, 6)
	assert.Equal(t, int32(2), p.ready(start))
	p.scale(start.Add(15*time.Second), 8)
	assert.Equal(t, int32(2), p.ready(start.Add(29*time.Second)))
	assert.Equal(t, int32(6), p.ready(start.Add(30*time.Second)))
	assert.Equal(t, int32(8), p.ready(start.Add(45*time.Second)))
}

func TestAScaleDownTakesThoseThatAreNotReadyFirst(t *testing.T) {
	p := newPods(4, time.Minute)
	p.scale(start, 7)
	p.scale(start.Add(time.Second), 9)
	p.scale(start.Add(2*time.Second), 6)
	assert.Equal(t, int32(4), p.ready(start.Add(2*time.Second)), "the newest two and one of the three before")
	assert.Equal(t, int32(6), p.ready(start.Add(time.Minute)))
	p.scale(start.Add(time.Hour), 3)
	assert.Equal(t, int32(3), p.ready(start.Add(time.Hour)))
}

func TestNoMoreAreReadyThanWereAskedForAndAllAreInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after := time.Duration(rapid.IntRange(0, 120).Draw(t, "after")) * time.Second
		p := newPods(rapid.Int32Range(1, 20).Draw(t, "begin"), after)
		now := start
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "wait")) * time.Second)
			before := p.ready(now)
			asked := rapid.Int32Range(1, 20).Draw(t, "asked")
			p.scale(now, asked)
			ready := p.ready(now)
			if ready > asked || ready < 1 || asked >= before && ready < before {
				t.Fatalf("%d of %d are ready, before it were %d", ready, asked, before)
			}
		}
		if ready := p.ready(now.Add(after)); ready != p.asked {
			t.Fatalf("%d of %d are ready in the end", ready, p.asked)
		}
	})
}

func TestASummaryOfAThousandReplicasInAYearDoesNotOverflow(t *testing.T) {
	var s Summary
	s.Add(&Step{Verdict: Verdict{Replicas: 1000}, Before: 1000, For: 366 * 24 * time.Hour})
	assert.InDelta(t, 1000*366*24, s.ReplicaHours(), 0)
	assert.InDelta(t, 1000, s.Mean(), 0)
}

func TestAChangeThatTurnsBackSoonIsAFlap(t *testing.T) {
	var s Summary
	at := start
	for _, change := range []struct {
		after  time.Duration
		before int32
		to     int32
	}{{0, 2, 4}, {time.Minute, 4, 6}, {5 * time.Minute, 6, 5}, {5*time.Minute + 1, 5, 7}} {
		at = at.Add(change.after)
		s.Add(&Step{Verdict: Verdict{Replicas: change.to}, Before: change.before, At: at, For: time.Second})
	}
	assert.Equal(t, []int{3, 1, 1}, []int{s.Ups, s.Downs, s.Flaps})
}
