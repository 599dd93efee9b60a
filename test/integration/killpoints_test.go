//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The story of the kill points: up to a steady high, the load falls, the window passes,
// down by steps, the load rises, up by steps and a rate.
const (
	storyFalls = 30 * time.Second
	storyRises = 180 * time.Second
	storyEnds  = 330 * time.Second
)

func storyWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, usual, 6, loadFrom{0, 1000}, loadFrom{storyFalls, 300}, loadFrom{storyRises, 1200})
}

// chapter is a part of the story: the same calls mean something else in another.
func (w *world) chapter() string {
	switch {
	case w.elapsed() < storyFalls:
		return "high"
	case w.elapsed() < storyRises:
		return "low"
	}
	return "rising"
}

// point is a call of an evaluation of the story, and what goes wrong with it.
type point struct {
	evaluation, call int
	fault            fault
	name             string
}

// points tells the story without a fault, and lists what can go wrong in it: each call,
// and the end, of the first evaluation of each kind. Evaluations of one chapter that
// make the same calls are of one kind, as are all that write nothing.
func points(t *testing.T) []point {
	t.Helper()
	w := storyWorld(t)
	var list []point
	known := map[string]bool{}
	for evaluation := 0; w.elapsed() < storyEnds; evaluation++ {
		chapter := w.chapter()
		_, err := w.evaluate(-1, "")
		require.NoError(t, err)
		kind := fmt.Sprint(w.faults.calls)
		if slices.ContainsFunc(w.faults.calls, func(c call) bool { return c.kind == write }) {
			kind += chapter
		}
		if !known[kind] {
			known[kind] = true
			at := chapter + " " + w.elapsed().String()
			list = append(list, pointsOf(w.faults.calls, evaluation, at)...)
		}
		w.advance(w.every)
	}
	require.Equal(t, int32(12), w.replicas())
	w.verify()
	return list
}

func pointsOf(calls []call, evaluation int, at string) []point {
	var list []point
	for n, c := range calls {
		for _, f := range []fault{killed, refused, conflicting, lost} {
			if c.suffers(f) {
				list = append(list, point{evaluation, n, f, fmt.Sprintf("%s, call %d, %s %s", at, n, c.name, f)})
			}
		}
	}
	return append(list, point{evaluation, len(calls), killed, at + ", at the end, killed"})
}

func TestWhereverTheLeaderIsKilledOrACallFails_EveryLimitIsKept(t *testing.T) {
	list := points(t)
	for _, must := range []string{"get scale", "update scale", "patch status", "samples", "event Scaled", "ScaleBinding"} {
		assert.Condition(t, func() bool {
			for _, p := range list {
				if strings.Contains(p.name, must) {
					return true
				}
			}
			return false
		}, "the story has no call %q", must)
	}
	t.Logf("%d points", len(list))
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := storyWorld(t)
			w.until(time.Duration(p.evaluation) * w.every)
			w.strike(p.call, p.fault)
			if w.elapsed() < storyRises {
				w.reaches(3, storyRises)
				w.until(storyRises)
			}
			w.reaches(12, storyEnds)
			w.verify()
		})
	}
}

func TestHoweverOftenTheLeaderIsKilledAndCallsFail_EveryLimitIsKept(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			w := storyWorld(t)
			for w.elapsed() < storyEnds {
				what := []fault{killed, killed, refused, conflicting, lost}[random.IntN(5)]
				if died, _ := w.evaluate(random.IntN(24), what); died {
					w.deaths++
					w.start()
				}
				w.advance(time.Duration(1+random.IntN(15)) * time.Second)
			}
			require.Greater(t, w.deaths, 3)
			w.verify()
			w.until(storyEnds + 2*time.Minute)
			assert.Equal(t, int32(12), w.replicas(), "it gets there in the end: %v", w.writes)
			w.verify()
		})
	}
}

func TestNoVerbOfAClientGoesPastTheFaults(t *testing.T) {
	funcs := reflect.ValueOf((&faults{}).funcs())
	for i := range funcs.NumField() {
		switch name := funcs.Type().Field(i).Name; name {
		case "Watch", "SubResource": // no process of these tests watches; what SubResource gives has each verb
		default:
			assert.False(t, funcs.Field(i).IsNil(), name)
		}
	}
}
