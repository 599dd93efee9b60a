package race

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"k8s.io/apimachinery/pkg/types"
)

// hpaSeenWithin is how long an HPA that is created after the first write of an epoch
// may go unnoticed: the operators find it in their caches.
const hpaSeenWithin = 5 * time.Second

// verdict is what the checks say of one Deployment's record.
type verdict struct {
	problems []string
	// late are writes that were under way when the Deployment changed hands: looked
	// up and begun while their AutoScaler held it, and stored before its successor
	// was confirmed.
	late    []string
	history []porcupine.Operation
	writes  int
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge applies all checks to a record that is complete.
func judge(key types.NamespacedName, t *target, hpaLook func(namespace string, by int64) (span, bool)) verdict {
	var v verdict
	v.epochs(t)
	v.history = slices.Concat(clientHistory(t), bindHistory(t))
	writes := v.authors(t)
	v.fencing(t, writes)
	v.rivals(key, t, writes, hpaLook)
	v.writes = len(writes)
	return v
}

// epochs: an epoch has one owner, never falls and never skips, and whatever the watch
// saw was written by an operator.
func (v *verdict) epochs(t *target) {
	written := map[string]bool{}
	for _, b := range t.binds {
		written[fmt.Sprint(b.owner, b.epoch)] = true
	}
	for i, b := range t.bindings {
		if b.deleted {
			v.problem("the binding was deleted in epoch %d", b.epoch)
			continue
		}
		if !written[fmt.Sprint(b.owner, b.epoch)] {
			v.problem("no operator wrote the binding of epoch %d for %q", b.epoch, b.name)
		}
		if i == 0 {
			continue
		}
		switch before := t.bindings[i-1]; {
		case b.epoch < before.epoch:
			v.problem("the epoch fell from %d to %d", before.epoch, b.epoch)
		case b.epoch == before.epoch && b.owner != before.owner:
			v.problem("epoch %d has two owners: %q [%.8s] and %q [%.8s]", b.epoch, before.name, before.owner, b.name, b.owner)
		case b.epoch > before.epoch+1:
			v.problem("the epoch went from %d to %d", before.epoch, b.epoch)
		}
	}
}

// attributed is a stored write and on whose behalf it was made.
type attributed struct {
	scaleWrite
	uid    types.UID // of the Deployment
	author *contender
	look   look
}

// authors finds for whom each change of the count was written, and the live look at
// the binding before it, and adds both to the history.
func (v *verdict) authors(t *target) []attributed {
	var writes []attributed
	for _, d := range t.deployments {
		if d.created || d.deleted {
			continue
		}
		i := slices.IndexFunc(t.scales, func(s scaleWrite) bool { return s.revision == d.revision })
		author := t.author(d.replicas)
		switch {
		case i < 0:
			v.problem("revision %d: a count of %d that no operator wrote", d.revision, d.replicas)
			continue
		case author == nil:
			v.problem("revision %d: a count of %d that nobody wants", d.revision, d.replicas)
			continue
		}
		w := attributed{t.scales[i], d.uid, author, lastLook(t, t.scales[i], author.uid)}
		if w.look.ret == 0 {
			v.problem("revision %d: %q was written for without a look at its binding", d.revision, author.label)
			continue
		}
		writes = append(writes, w)
		v.history = append(v.history, operation(w.operator+1, span{w.look.call, w.ret},
			op{verb: write, owner: string(author.uid), name: author.name, epoch: w.look.epoch}))
	}
	return writes
}

// lastLook is the operator's last live reading before the write that showed it the
// author as the owner.
func lastLook(t *target, w scaleWrite, author types.UID) look {
	var found look
	for _, l := range t.looks[w.operator] {
		if l.ret <= w.call && l.ret > found.ret && l.owner == author {
			found = l
		}
	}
	return found
}

// fencing holds the writes, in the order of storage, against the binding at their
// revision.
func (v *verdict) fencing(t *target, writes []attributed) {
	highest := int64(0)
	for _, w := range writes {
		if w.look.epoch < highest {
			v.problem("revision %d: a write of epoch %d (%s) after one of epoch %d", w.revision, w.look.epoch, w.author.label, highest)
		}
		highest = max(highest, w.look.epoch)
		b := bindingThen(t, w.revision)
		switch {
		case b.owner == w.author.uid && b.confirmed && b.targetUID == w.uid:
		case b.owner != w.author.uid && b.confirmed:
			v.problem("revision %d: written for %q, which held epoch %d when it was looked up, after %q was confirmed in epoch %d",
				w.revision, w.author.label, w.look.epoch, b.name, b.epoch)
		case b.owner == w.author.uid:
			v.problem("revision %d: written for %q, which is not confirmed in epoch %d for this Deployment", w.revision, w.author.label, b.epoch)
		default:
			v.late = append(v.late, fmt.Sprintf("revision %d: for %q of epoch %d, %d ms after the look; epoch %d, owner %q, had begun",
				w.revision, w.author.label, w.look.epoch, (w.ret-w.look.ret)/int64(time.Millisecond), b.epoch, b.name))
		}
	}
}

// bindingThen is the binding as it was stored at a revision.
func bindingThen(t *target, revision uint64) bindingAt {
	var then bindingAt
	for _, b := range t.bindings {
		if b.revision < revision {
			then = b
		}
	}
	return then
}

// rivals: the first write of an epoch follows a live look for HPAs, later ones stop
// once the HPA can have been seen, and nothing is written in quiet times.
func (v *verdict) rivals(key types.NamespacedName, t *target, writes []attributed, hpaLook func(string, int64) (span, bool)) {
	begun := map[int64]bool{}
	for _, w := range writes {
		for _, q := range t.quiet {
			if w.call >= q.call && w.ret <= q.ret {
				v.problem("revision %d: written for %q although it had said that it holds", w.revision, w.author.label)
			}
		}
		if there, since := hpaThen(t, w.look.call); there && w.ret < since.ret && w.look.call-since.call > hpaSeenWithin.Nanoseconds() {
			v.problem("revision %d: written for %q, %d ms after the HPA was stored", w.revision, w.author.label, (w.look.call-since.call)/int64(time.Millisecond))
		}
		if begun[w.look.epoch] {
			continue
		}
		begun[w.look.epoch] = true
		looked, ok := hpaLook(key.Namespace, w.call)
		if !ok {
			v.problem("revision %d: the first write for %q without a live look for HPAs", w.revision, w.author.label)
			continue
		}
		v.history = append(v.history, operation(w.operator+1, span{looked.call, w.ret},
			op{verb: unrivaled, owner: string(w.author.uid), name: w.author.name, epoch: w.look.epoch}))
	}
}

// hpaThen says whether an HPA was surely there, and the span of its life: from the
// end of its creation to the begin of its deletion.
func hpaThen(t *target, when int64) (bool, span) {
	var life span
	for _, o := range t.ops {
		switch {
		case o.verb == hpaStored && o.ret <= when:
			life = span{o.ret, int64(^uint64(0) >> 1)}
		case o.verb == hpaGone:
			life.ret = o.call
		}
	}
	return life.call > 0 && when < life.ret, life
}

// settled says whether the record ends as every round must: free.
func (v *verdict) settled(t *target) {
	if b := t.binding(); b.owner != "" {
		v.problem("at the end of the round the binding still names %q (epoch %d, pending %v)", b.name, b.epoch, b.pending)
	}
}

func operation(client int, s span, o op) porcupine.Operation {
	return porcupine.Operation{ClientId: client, Input: o, Call: s.call, Return: s.ret}
}

// clientHistory is what the clients saw.
func clientHistory(t *target) []porcupine.Operation {
	var history []porcupine.Operation
	for _, o := range t.ops {
		if c := t.byLabel(o.label); c != nil {
			o.owner, o.name = string(c.uid), c.name
		}
		history = append(history, operation(0, o.span, o.op))
	}
	return history
}

// bindHistory is what the operators wrote into the binding.
func bindHistory(t *target) []porcupine.Operation {
	var history []porcupine.Operation
	for _, b := range t.binds {
		history = append(history, operation(3, b.span, op{verb: bind, owner: string(b.owner), name: b.name, epoch: b.epoch}))
	}
	return history
}

// narrate is a history as a person reads it, by the time of the calls.
func narrate(history []porcupine.Operation) string {
	sorted := slices.Clone(history)
	slices.SortStableFunc(sorted, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	who := []string{"client", "operator 0", "operator 1", "binding"}
	var b strings.Builder
	for _, o := range sorted {
		fmt.Fprintf(&b, "  %12.3f ms .. %12.3f ms  %-10s  %s\n", float64(o.Call)/1e6, float64(o.Return)/1e6, who[o.ClientId], o.Input)
	}
	return b.String()
}
