package race

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// span is when something began and ended, in nanoseconds since the recorder began.
// One clock for all observers makes their observations comparable.
type span struct{ call, ret int64 }

// clientOp is what a client asked and was told. The AutoScaler is given by its label
// (see contender), because its UID may not be known yet.
type clientOp struct {
	span
	op
	label string
}

// look is a live reading of a binding by an operator, or of a namespace's HPAs.
type look struct {
	span
	owner types.UID
	epoch int64
}

// bindWrite is an operator's write of a binding's spec that was stored.
type bindWrite struct {
	span
	owner types.UID
	name  string
	epoch int64
}

// scaleWrite is an operator's write of a Deployment's scale that was stored.
type scaleWrite struct {
	span
	operator int
	replicas int32
	revision uint64
}

// bindingAt is a binding as the watch saw it. Revisions are those of the one etcd
// behind all resources: they order everything that was ever stored.
type bindingAt struct {
	revision  uint64
	owner     types.UID
	name      string
	epoch     int64
	targetUID types.UID
	confirmed bool
	pending   bool
	deleted   bool
}

// deploymentAt is a Deployment's replica count as the watch saw it.
type deploymentAt struct {
	revision uint64
	uid      types.UID
	replicas int32
	created  bool
	deleted  bool
}

// contender is an AutoScaler of a race, known by a label before it has a UID. No two
// of a Deployment want the same replica count: a stored count tells for whom it was
// written.
type contender struct {
	label, name string
	uid         types.UID
	counts      []int32
}

// target is everything that is known of one Deployment.
type target struct {
	ops    []clientOp
	looks  map[int][]look // by operator
	binds  []bindWrite
	scales []scaleWrite
	// aboutToWrite counts the readings of the scale, which operators do right before
	// they write.
	aboutToWrite int
	bindings     []bindingAt
	deployments  []deploymentAt
	contenders   []*contender
	// quiet are the times in which nothing may be written.
	quiet []span
}

// recorder collects what clients, proxies and watches see. It is safe for
// concurrent use.
type recorder struct {
	begin time.Time

	mu      sync.Mutex
	targets map[types.NamespacedName]*target
	// hpaLooks are the live lists of HPAs that succeeded, by namespace.
	hpaLooks map[string][]span
	// autoscalers are as the watch last saw them.
	autoscalers map[types.NamespacedName]*v1alpha1.AutoScaler
	// stored counts the scale writes that the watch saw, by Deployment.
	stored map[types.NamespacedName]int
	// changed is closed and replaced whenever the watch sees something.
	changed chan struct{}
}

func newRecorder() *recorder {
	return &recorder{
		begin: time.Now(), targets: map[types.NamespacedName]*target{}, hpaLooks: map[string][]span{},
		autoscalers: map[types.NamespacedName]*v1alpha1.AutoScaler{}, stored: map[types.NamespacedName]int{},
		changed: make(chan struct{}),
	}
}

func (r *recorder) now() int64 { return time.Since(r.begin).Nanoseconds() }

// on changes what is known of a Deployment that a round is about.
func (r *recorder) on(key types.NamespacedName, change func(*target)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.targets[key]; t != nil {
		change(t)
	}
}

// begins starts the record of a Deployment.
func (r *recorder) begins(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets[key] = &target{looks: map[int][]look{}}
}

// ends gives the record of a Deployment and forgets it.
func (r *recorder) ends(key types.NamespacedName) *target {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.targets[key]
	delete(r.targets, key)
	return t
}

// contend makes a contender known to the Deployments that it may ask for.
func (r *recorder) contend(c *contender, keys ...types.NamespacedName) {
	for _, key := range keys {
		r.on(key, func(t *target) { t.contenders = append(t.contenders, c) })
	}
}

// identify gives a contender the UID under which it was stored.
func (r *recorder) identify(c *contender, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.uid = uid
}

// counts adds a count that a contender may want from now on.
func (r *recorder) counts(c *contender, count int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.counts = append(c.counts, count)
}

// asked records a client's operation that began at call and has just ended.
func (r *recorder) asked(key types.NamespacedName, call int64, label string, o op) {
	s := span{call, r.now()}
	r.on(key, func(t *target) { t.ops = append(t.ops, clientOp{s, o, label}) })
}

func (r *recorder) sawScaleRead(key types.NamespacedName) {
	r.on(key, func(t *target) { t.aboutToWrite++; r.notify() })
}

func (r *recorder) sawHPAList(namespace string, s span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hpaLooks[namespace] = append(r.hpaLooks[namespace], s)
}

// lastHPALook is the latest live look for HPAs in a namespace that ended by then.
func (r *recorder) lastHPALook(namespace string, by int64) (span, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last span
	for _, s := range r.hpaLooks[namespace] {
		if s.ret <= by && s.ret > last.ret {
			last = s
		}
	}
	return last, last.ret > 0
}

// notify wakes those who wait for the watch. The caller holds the lock.
func (r *recorder) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// sawBinding takes in an event of the watch.
func (r *recorder) sawBinding(b *v1alpha1.ScaleBinding, deleted bool) {
	seen := bindingAt{
		revision: revision(b), owner: b.Spec.OwnerUID, epoch: b.Spec.Epoch, targetUID: b.Spec.TargetUID, deleted: deleted,
		confirmed: !b.Free() && b.Confirmed(b.Spec.TargetUID),
	}
	seen.pending = !b.Free() && !seen.confirmed
	if b.Spec.OwnerRef != nil {
		seen.name = b.Spec.OwnerRef.Name
	}
	r.on(nameOf(b), func(t *target) { t.bindings = append(t.bindings, seen); r.notify() })
}

func (r *recorder) sawDeployment(d *appsv1.Deployment, deleted bool) {
	key := nameOf(d)
	seen := deploymentAt{revision: revision(d), uid: d.UID, replicas: *d.Spec.Replicas, deleted: deleted}
	r.on(key, func(t *target) {
		last := t.deployment()
		seen.created = last.uid != seen.uid
		if !seen.created && !deleted && last.replicas == seen.replicas {
			return
		}
		t.deployments = append(t.deployments, seen)
		if !seen.created && !deleted {
			r.stored[key]++
		}
		r.notify()
	})
}

func (r *recorder) sawAutoScaler(a *v1alpha1.AutoScaler, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.autoscalers[nameOf(a)] = a
	if deleted {
		delete(r.autoscalers, nameOf(a))
	}
	r.notify()
}

// seen asks what the watch saw, under the lock, and gives a channel that is closed
// at the next event.
func (r *recorder) seen(ask func() bool) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ask(), r.changed
}

// binding is the binding as last seen. The caller holds the recorder's lock.
func (t *target) binding() bindingAt { return last(t.bindings) }

// deployment is the Deployment as last seen.
func (t *target) deployment() deploymentAt { return last(t.deployments) }

func last[T any](of []T) T {
	var none T
	if len(of) == 0 {
		return none
	}
	return of[len(of)-1]
}

// complete says whether everything that the watches saw has its record of a proxy.
func (t *target) complete() bool {
	for _, b := range t.bindings {
		if !slices.ContainsFunc(t.binds, func(w bindWrite) bool { return w.owner == b.owner && w.epoch == b.epoch }) {
			return false
		}
	}
	for _, d := range t.deployments {
		if !d.created && !d.deleted && !slices.ContainsFunc(t.scales, func(s scaleWrite) bool { return s.revision == d.revision }) {
			return false
		}
	}
	return true
}

// author is the contender that wants a replica count.
func (t *target) author(count int32) *contender {
	for _, c := range t.contenders {
		if slices.Contains(c.counts, count) {
			return c
		}
	}
	return nil
}

// byLabel finds a contender.
func (t *target) byLabel(label string) *contender {
	for _, c := range t.contenders {
		if c.label == label {
			return c
		}
	}
	return nil
}

func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// revision is an object's place in the order of storage.
func revision(obj metav1.Object) uint64 {
	n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resourceVersion %q is not etcd's revision", obj.GetResourceVersion()))
	}
	return n
}

// condition gives an AutoScaler's condition, or an empty one.
func condition(a *v1alpha1.AutoScaler, name string) metav1.Condition {
	if c := meta.FindStatusCondition(a.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}
