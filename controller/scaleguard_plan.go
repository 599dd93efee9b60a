package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Bounds of what a namespace's index writes to storage. Every change of one entry
// writes a whole ScaleGuard, so writes are paced by their size: in any time t at
// most indexBurst + t · indexRate bytes. Ten thousand Deployments that come to be
// held one by one within an hour cost 60 MB, not the 2 GB of a write for each.
const (
	// indexPause is the least time between two looks at a namespace.
	indexPause = time.Second
	// indexRate, in bytes per second: an index of a full ScaleGuard lags at most
	// 22 s behind what is newly held.
	indexRate = 16 << 10
	// indexBurst, in bytes, lets entries go at once, ten times for a full ScaleGuard:
	// who paused an AutoScaler is about to scale by hand.
	indexBurst = 4 << 20
)

// guardName is the name of a namespace's nth ScaleGuard.
func guardName(n int) string {
	if n == 0 {
		return "guard"
	}
	return fmt.Sprintf("guard-%d", n)
}

// indexOf gives what the ScaleGuards of a namespace are to hold: its closed
// bindings in order of their names, in pieces of at most limit bytes.
func indexOf(bindings []v1alpha1.ScaleBinding, limit int) []v1alpha1.ScaleGuardSpec {
	var closed []*v1alpha1.ScaleBinding
	for i := range bindings {
		if entryOf(&bindings[i]) != "" {
			closed = append(closed, &bindings[i])
		}
	}
	slices.SortFunc(closed, func(a, b *v1alpha1.ScaleBinding) int { return cmp.Compare(a.Name, b.Name) })
	var specs []v1alpha1.ScaleGuardSpec
	var held strings.Builder
	count := int32(0)
	flush := func() {
		if count > 0 {
			specs = append(specs, v1alpha1.ScaleGuardSpec{Count: count, Held: "/" + held.String()})
		}
		held.Reset()
		count = 0
	}
	for _, b := range closed {
		entry := entryOf(b)
		if 1+held.Len()+len(entry) > limit {
			flush()
		}
		held.WriteString(entry)
		count++
	}
	flush()
	return specs
}

// entryOf is a binding's entry in the index, empty where it has none.
func entryOf(b *v1alpha1.ScaleBinding) string {
	if b.DecodeError != "" || !b.Closed() || b.Spec.OwnerRef == nil {
		return ""
	}
	return v1alpha1.HeldEntry(b.Name, b.Spec.OwnerRef.Name)
}

// indexChange is what sets a namespace's ScaleGuards apart from what they are to be.
type indexChange struct {
	write, remove []v1alpha1.ScaleGuard
	// bytes that the writes store.
	bytes int
	// opens: an entry goes, or names another holder.
	opens bool
}

func (c *indexChange) empty() bool { return len(c.write)+len(c.remove) == 0 }

// changeTo compares the stored ScaleGuards of a namespace with the index. One that
// is to be created has no resourceVersion.
func changeTo(specs []v1alpha1.ScaleGuardSpec, namespace string, stored []v1alpha1.ScaleGuard) *indexChange {
	c := &indexChange{}
	byName := map[string]*v1alpha1.ScaleGuard{}
	for i := range stored {
		byName[stored[i].Name] = &stored[i]
	}
	for n, spec := range specs {
		next := v1alpha1.ScaleGuard{}
		next.Namespace, next.Name = namespace, guardName(n)
		if now := byName[next.Name]; now != nil {
			delete(byName, next.Name)
			if now.Spec == spec {
				continue
			}
			now.DeepCopyInto(&next)
		}
		next.Spec = spec
		c.write = append(c.write, next)
		c.bytes += len(spec.Held)
	}
	for i := range stored {
		if byName[stored[i].Name] != nil {
			c.remove = append(c.remove, stored[i])
		}
	}
	if wanted, now := entries(specs, stored); wanted >= now {
		// Entries move to later pieces: those are written first, so that none is
		// missing in between.
		slices.Reverse(c.write)
	}
	c.opens = !c.empty() && opens(specs, stored)
	return c
}

// opens says whether something stored is not in the index any more.
func opens(specs []v1alpha1.ScaleGuardSpec, stored []v1alpha1.ScaleGuard) bool {
	wanted := map[string]bool{"": true} // what is before the first "/" and after the last
	for _, spec := range specs {
		for entry := range strings.SplitSeq(spec.Held, "/") {
			wanted[entry] = true
		}
	}
	for i := range stored {
		for entry := range strings.SplitSeq(stored[i].Spec.Held, "/") {
			if !wanted[entry] {
				return true
			}
		}
	}
	return false
}

// entries counts what ScaleGuards hold.
func entries(specs []v1alpha1.ScaleGuardSpec, stored []v1alpha1.ScaleGuard) (wanted, now int32) {
	for i := range specs {
		wanted += specs[i].Count
	}
	for i := range stored {
		now += stored[i].Spec.Count
	}
	return wanted, now
}

// pace bounds a namespace's writes. A restart forgets it: at most one more burst.
type pace struct {
	// looked and wrote are the times of the last look and write.
	looked, wrote time.Time
	bucket        *rate.Limiter
}

func newPace() *pace { return &pace{bucket: rate.NewLimiter(indexRate, indexBurst)} }

// look gives the wait until the namespace may be looked at again, or 0 and notes
// the look.
func (p *pace) look(now time.Time) time.Duration {
	if wait := indexPause - now.Sub(p.looked); wait > 0 && wait <= indexPause {
		return wait
	}
	p.looked = now
	return 0
}

// write gives the wait until a change may be written, or 0 and notes the write.
// What only adds waits for as long as its size costs; what opens may use the burst.
func (p *pace) write(now time.Time, c *indexChange) time.Duration {
	cost := min(c.bytes, indexBurst)
	if !c.opens {
		pause := seconds(float64(cost) / indexRate)
		if wait := pause - now.Sub(p.wrote); wait > 0 && wait <= pause {
			return wait
		}
	}
	if !p.bucket.AllowN(now, cost) {
		missing := float64(cost) - p.bucket.TokensAt(now)
		return max(indexPause, seconds(missing/indexRate))
	}
	p.wrote = now
	return 0
}

// failed lets a change that was not written, or not wholly, be tried again at once:
// until then something held may be missing.
func (p *pace) failed() { p.wrote = time.Time{} }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
