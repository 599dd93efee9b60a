package race

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// verb is what an operation of a history does.
type verb string

const (
	// bind is a write of a ScaleBinding's spec: a claim, a take-over, a release, or
	// a change that leaves owner and epoch alone.
	bind verb = "bind"
	// read is a reading of the ScaleBinding by somebody else.
	read verb = "read"
	// stored: the API server stored an AutoScaler that asks for the Deployment, or
	// pointed an existing one at it.
	stored verb = "stored"
	// gone: it was deleted, or pointed elsewhere.
	gone verb = "gone"
	// refused: a request was refused because the holder that is named holds the
	// Deployment.
	refused verb = "refused"
	// refusedPending: because its claim may be on its way into storage. That is said
	// of an unconfirmed claim until its grace ends, whatever became of its owner.
	refusedPending verb = "refused, pending"
	// refusedInLine: because the named AutoScaler was there before.
	refusedInLine verb = "refused, in line"
	// refusedByHPA: because an HPA targets the Deployment.
	refusedByHPA verb = "refused, HPA"
	// write is a write of the Deployment's scale, from the live look at the binding
	// before it to its answer.
	write verb = "write"
	// hpaStored and hpaGone are the life of the HPA.
	hpaStored verb = "HPA stored"
	hpaGone   verb = "HPA gone"
	// unrivaled is the first write of an epoch, from the live look for HPAs before
	// it to its answer.
	unrivaled verb = "unrivaled"
)

// op is one operation on one Deployment.
type op struct {
	verb verb
	// owner is the UID of the AutoScaler that it is about, empty where a binding is
	// free; name is its name.
	owner, name string
	epoch       int64
	// waits: the AutoScaler may be stored without holding the Deployment.
	waits bool
}

// String is the operation as a person reads it.
func (o op) String() string {
	var b strings.Builder
	b.WriteString(string(o.verb))
	switch o.verb {
	case bind, read, write, unrivaled:
		if o.owner == "" {
			fmt.Fprintf(&b, " free@%d", o.epoch)
		} else {
			fmt.Fprintf(&b, " %s@%d", o.name, o.epoch)
		}
	case stored, gone, refused, refusedPending, refusedInLine:
		b.WriteString(" " + o.name)
	case hpaStored, hpaGone, refusedByHPA:
	}
	if o.waits {
		b.WriteString(" (waits)")
	}
	if o.owner != "" {
		fmt.Fprintf(&b, " [%.8s]", o.owner)
	}
	return b.String()
}

// lock is the state of one Deployment: who owns its replica count, under which
// epoch, and who is there to ask for it.
type lock struct {
	owner, name string
	epoch       int64
	// stored and gone hold the UIDs of AutoScalers that asked for the Deployment
	// and, of these, those that do no more: in order and each with a space after it,
	// so that states compare.
	stored, gone string
	hpa          bool
}

func (l *lock) isStored(uid string) bool { return strings.Contains(l.stored, uid+" ") }
func (l *lock) isGone(uid string) bool   { return uid != "" && strings.Contains(l.gone, uid+" ") }
func (l *lock) alive(uid string) bool {
	return uid != "" && l.isStored(uid) && !l.isGone(uid)
}

// aliveByName says whether an AutoScaler of the name asks for the Deployment. Names
// maps UIDs to names.
func (l *lock) aliveByName(name string, names map[string]string) bool {
	for _, uid := range strings.Fields(l.stored) {
		if names[uid] == name && !l.isGone(uid) {
			return true
		}
	}
	return false
}

// with adds a UID to a set, whose order does not matter.
func with(set, uid string) string {
	uids := append(strings.Fields(set), uid)
	slices.Sort(uids)
	return strings.Join(uids, " ") + " "
}

// step is the sequential specification: whether the lock could do o, and the lock
// after it.
func (l lock) step(o op, names map[string]string) (bool, lock) {
	switch o.verb {
	case bind:
		return l.bound(o)
	case read:
		return l.owner == o.owner && l.epoch == o.epoch, l
	case stored:
		// Whoever does not wait is stored only as the owner.
		ok := !l.isStored(o.owner) && (o.waits || l.owner == o.owner)
		l.stored = with(l.stored, o.owner)
		return ok, l
	case gone:
		ok := l.alive(o.owner)
		l.gone = with(l.gone, o.owner)
		return ok, l
	case refused:
		return l.owner != "" && l.name == o.name && !l.isGone(l.owner), l
	case refusedPending:
		return l.owner != "" && l.name == o.name, l
	case refusedInLine:
		ok := l.aliveByName(o.name, names)
		return ok, l
	case refusedByHPA:
		return l.hpa, l
	case write:
		return l.owner == o.owner && l.epoch == o.epoch, l
	case unrivaled:
		return !l.hpa, l
	case hpaStored, hpaGone:
		ok := l.hpa == (o.verb == hpaGone)
		l.hpa = o.verb == hpaStored
		return ok, l
	}
	panic("unknown verb " + o.verb)
}

// bound: a binding changes hands only with the next epoch, and only when its owner
// is not there (any more) or claims anew. Nobody claims who is gone.
func (l lock) bound(o op) (bool, lock) {
	if o.owner == l.owner && o.epoch == l.epoch {
		return true, l
	}
	ok := o.epoch == l.epoch+1 && !l.isGone(o.owner) && (o.owner == l.owner && o.owner != "" || !l.alive(l.owner))
	l.owner, l.name, l.epoch = o.owner, o.name, o.epoch
	return ok, l
}

// model is the lock as porcupine asks for it.
func model(names map[string]string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lock{} },
		Step: func(state, input, _ any) (bool, any) {
			ok, next := state.(lock).step(input.(op), names)
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return input.(op).String() },
		DescribeState: func(state any) string {
			l := state.(lock)
			return fmt.Sprintf("owner %s [%.8s] epoch %d, HPA %v", l.name, l.owner, l.epoch, l.hpa)
		},
	}
}

// searchWithin bounds the search for a linearization of one Deployment's history. A
// history that is not judged by then counts as a failure.
const searchWithin = time.Minute

// linearizable judges a history and, where it is bad, gives what porcupine draws.
func linearizable(history []porcupine.Operation) (porcupine.CheckResult, porcupine.Model, porcupine.LinearizationInfo) {
	names := map[string]string{}
	for _, o := range history {
		if input := o.Input.(op); input.owner != "" {
			names[input.owner] = input.name
		}
	}
	m := model(names)
	result, info := porcupine.CheckOperationsVerbose(m, history, searchWithin)
	return result, m, info
}
