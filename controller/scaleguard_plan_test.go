package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func closedBinding(deployment, owner string) v1alpha1.ScaleBinding {
	b := v1alpha1.ScaleBinding{}
	b.Namespace, b.Name = "production", deployment
	b.Spec.OwnerRef, b.Spec.OwnerUID = &v1alpha1.OwnerReference{Name: owner}, "u"
	b.Spec.Guard = v1alpha1.GuardClosed
	return b
}

func closedBindings(n int) []v1alpha1.ScaleBinding {
	var all []v1alpha1.ScaleBinding
	for i := range n {
		all = append(all, closedBinding(fmt.Sprintf("service-%05d", i), fmt.Sprintf("scaler-%05d", i)))
	}
	return all
}

// storedAs gives the ScaleGuards that hold these specs.
func storedAs(specs []v1alpha1.ScaleGuardSpec) []v1alpha1.ScaleGuard {
	var guards []v1alpha1.ScaleGuard
	for n, spec := range specs {
		g := v1alpha1.ScaleGuard{Spec: spec}
		g.Namespace, g.Name, g.ResourceVersion = "production", guardName(n), "1"
		guards = append(guards, g)
	}
	return guards
}

func TestTheIndexHoldsTheClosedBindingsInOrder(t *testing.T) {
	open, free, broken := closedBinding("open", "a"), closedBinding("free", "a"), closedBinding("broken", "a")
	open.Spec.Guard = v1alpha1.GuardOpen
	free.Spec.OwnerUID, free.Spec.OwnerRef = "", nil
	broken.DecodeError = "not an integer"

	got := indexOf([]v1alpha1.ScaleBinding{closedBinding("worker", "queue"), open, free, broken, closedBinding("web", "web")}, v1alpha1.MaxHeldBytes)

	assert.Equal(t, []v1alpha1.ScaleGuardSpec{{Count: 2, Held: "/web=/worker=queue/"}}, got)
	assert.Empty(t, indexOf([]v1alpha1.ScaleBinding{open, free, broken}, v1alpha1.MaxHeldBytes), "none where nothing is closed")
}

func TestEveryClosedBindingIsInOnePieceOfTheIndexWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]{1,20}`), 0, 40, rapid.ID).Draw(t, "names")
		limit := rapid.IntRange(43, 200).Draw(t, "limit") // one entry always fits
		var bindings []v1alpha1.ScaleBinding
		for _, name := range names {
			bindings = append(bindings, closedBinding(name, name))
		}
		var found []string
		for n, spec := range indexOf(bindings, limit) {
			assert.LessOrEqual(t, len(spec.Held), limit)
			assert.Equal(t, int(spec.Count), strings.Count(spec.Held, "="))
			assert.NotZero(t, spec.Count, "piece %d", n)
			for _, name := range names {
				if holder, ok := (&v1alpha1.ScaleGuard{Spec: spec}).HolderOf(name); ok {
					assert.Equal(t, name, holder)
					found = append(found, name)
				}
			}
		}
		slices.Sort(names)
		slices.Sort(found)
		assert.True(t, slices.Equal(names, found))
	})
}

func TestTheChangeIsWhatSetsTheStoredGuardsApart(t *testing.T) {
	specs := indexOf([]v1alpha1.ScaleBinding{closedBinding("web", "web"), closedBinding("worker", "queue")}, v1alpha1.MaxHeldBytes)
	stored := storedAs(specs)
	edited := func(held string) []v1alpha1.ScaleGuard {
		g := stored[0]
		g.Spec.Held = held
		return []v1alpha1.ScaleGuard{g}
	}
	stray := stored[0]
	stray.Name = "mine"
	for name, tc := range map[string]struct {
		specs          []v1alpha1.ScaleGuardSpec
		stored         []v1alpha1.ScaleGuard
		write, removed []string
		opens          bool
	}{
		"nothing":                                  {specs, stored, nil, nil, false},
		"the first entries":                        {specs, nil, []string{"guard"}, nil, false},
		"the last entry goes":                      {nil, stored, nil, []string{"guard"}, true},
		"an entry was added":                       {specs, edited("/web=/"), []string{"guard"}, nil, false},
		"an entry goes":                            {specs, edited("/web=/worker=queue/x=y/"), []string{"guard"}, nil, true},
		"another holder":                           {specs, edited("/web=old/worker=queue/"), []string{"guard"}, nil, true},
		"a name that holds another's":              {specs, edited("/my-web=web/worker=queue/"), []string{"guard"}, nil, true},
		"somebody's own guard":                     {specs, append([]v1alpha1.ScaleGuard{stray}, stored...), nil, []string{"mine"}, false},
		"one piece less, of which nothing is lost": {specs, append(storedAs(specs), storedAs([]v1alpha1.ScaleGuardSpec{specs[0], specs[0]})[1]), nil, []string{"guard-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := changeTo(tc.specs, "production", tc.stored)
			var write, removed []string
			for i := range c.write {
				write = append(write, c.write[i].Name)
			}
			for i := range c.remove {
				removed = append(removed, c.remove[i].Name)
			}
			assert.Equal(t, tc.write, write)
			assert.Equal(t, tc.removed, removed)
			assert.Equal(t, tc.opens, c.opens)
			assert.Equal(t, len(write)+len(removed) == 0, c.empty())
		})
	}
}

// play has bindings close, one each interval, and writes whenever the pace allows.
func play(t *testing.T, n int, interval time.Duration) (bytes, writes int, lag time.Duration) {
	t.Helper()
	p, all := newPace(), closedBindings(n)
	closedAt := func(i int) time.Time { return noon.Add(time.Duration(i) * interval) }
	var stored []v1alpha1.ScaleGuard
	done := 0
	for now := noon; done < n; {
		present := min(n, int(now.Sub(noon)/interval)+1)
		if wait := p.look(now); wait > 0 {
			now = now.Add(wait)
			continue
		}
		specs := indexOf(all[:present], v1alpha1.MaxHeldBytes)
		c := changeTo(specs, "production", stored)
		if c.empty() {
			now = closedAt(present)
			continue
		}
		if wait := p.write(now, c); wait > 0 {
			now = now.Add(wait)
			continue
		}
		bytes, writes = bytes+c.bytes, writes+1
		lag = max(lag, now.Sub(closedAt(done)))
		stored, done = storedAs(specs), present
	}
	return bytes, writes, lag
}

func TestTenThousandArrivalsWriteInProportionToTheirTime(t *testing.T) {
	for name, tc := range map[string]struct {
		interval time.Duration
		took     time.Duration
	}{
		"at once":         {time.Microsecond, time.Second},
		"within 100 s":    {10 * time.Millisecond, 100 * time.Second},
		"one each 100 ms": {100 * time.Millisecond, 1000 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bytes, writes, lag := play(t, 10_000, tc.interval)
			const size = 10_000 * len("service-00000=scaler-00000/")
			t.Logf("%d writes of %d bytes in all; an entry waited %s at most", writes, bytes, lag)
			assert.LessOrEqual(t, bytes, 2*size+int(tc.took.Seconds())*indexRate)
			assert.LessOrEqual(t, writes, int(tc.took.Seconds())+size/indexRate+2, "at most one each second")
			assert.LessOrEqual(t, lag, 45*time.Second)
		})
	}
}

func TestAnEntryThatGoesIsWrittenAtOnce(t *testing.T) {
	p, all := newPace(), closedBindings(10_000)
	full := storedAs(indexOf(all, v1alpha1.MaxHeldBytes))
	now := noon
	require.Zero(t, p.write(now, changeTo(indexOf(all, v1alpha1.MaxHeldBytes), "production", nil)))
	now = now.Add(indexPause)
	less := changeTo(indexOf(all[1:], v1alpha1.MaxHeldBytes), "production", full)
	more := changeTo(indexOf(append(closedBindings(10_000), closedBinding("z", "z")), v1alpha1.MaxHeldBytes), "production", full)

	assert.Positive(t, p.write(now, more), "what only adds waits for as long as its size costs")
	assert.Zero(t, p.write(now, less))

	// And no more often than storage can bear.
	bytes := 0
	for end := now.Add(time.Hour); now.Before(end); {
		wait := p.write(now, less)
		if wait == 0 {
			bytes += less.bytes
			wait = indexPause
		}
		now = now.Add(wait)
	}
	assert.LessOrEqual(t, bytes, indexBurst+3600*indexRate)
}

func TestANamespaceIsLookedAtOnceASecondAndALookForgivesAClockThatWentBack(t *testing.T) {
	p := newPace()
	assert.Zero(t, p.look(noon))
	assert.Equal(t, 600*time.Millisecond, p.look(noon.Add(400*time.Millisecond)))
	assert.Zero(t, p.look(noon.Add(time.Second)))
	assert.Zero(t, p.look(noon.Add(-time.Hour)))
}
