//go:build integration

package race

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// round is one race. Its objects have names of their own.
type round struct {
	*world
	ctx       context.Context
	scenario  string
	number    int
	namespace string
	random    *rand.Rand
	targets   []types.NamespacedName

	mu sync.Mutex
	// stored are the contenders that are in storage, with the Deployment each asks for.
	stored map[*contender]types.NamespacedName
	hpa    *autoscalingv2.HorizontalPodAutoscaler
}

// outcome is how the API server answered a client.
type outcome string

const (
	admitted      outcome = "admitted"
	refusedHeld   outcome = "refused: held"
	refusedLine   outcome = "refused: in line"
	refusedForHPA outcome = "refused: HPA"
	nameTaken     outcome = "name taken"
	// unanswered: the operators could not answer; nothing was stored.
	unanswered outcome = "no answer"
)

// deployment creates a Deployment of one replica and begins its record.
func (r *round) deployment(suffix string) (types.NamespacedName, error) {
	key := types.NamespacedName{Namespace: r.namespace, Name: fmt.Sprintf("%s-%05d%s", r.scenario, r.number, suffix)}
	r.recorder.begins(key)
	r.targets = append(r.targets, key)
	return key, r.client.Create(r.ctx, builders.Deployment(key.Namespace, key.Name, 1))
}

// contender makes an AutoScaler known that wants count replicas.
func (r *round) contender(label string, count int32, keys ...types.NamespacedName) *contender {
	c := &contender{label: label, name: fmt.Sprintf("%s-%05d-%s", r.scenario, r.number, strings.TrimRight(label, "'")), counts: []int32{count}}
	r.recorder.contend(c, keys...)
	return c
}

// perReplica is the targetPerReplica that makes count replicas of the demand.
func perReplica(count int32) string {
	return strconv.FormatFloat(demand/(float64(count)-0.5), 'f', 3, 64)
}

func (r *round) autoscaler(c *contender, key types.NamespacedName) *v1alpha1.AutoScaler {
	return builders.MakeAutoScaler(key.Namespace, c.name).Target(key.Name).Bounds(1, 100).Poll(5).
		Metric("load", profileName, perReplica(c.counts[0])).Obj()
}

// create stores an AutoScaler, trying again as long as nobody answers.
func (r *round) create(c *contender, key types.NamespacedName, change ...func(*v1alpha1.AutoScaler)) (outcome, error) {
	made := r.autoscaler(c, key)
	for _, f := range change {
		f(made)
	}
	return r.persist(func() (outcome, error) {
		a, call := made.DeepCopy(), r.recorder.now()
		result, err := r.told(key, call, r.client.Create(r.ctx, a))
		if result == admitted {
			r.recorder.identify(c, a.UID)
			r.recorder.asked(key, call, c.label, op{verb: stored, waits: waits(a)})
			r.keep(c, key)
		}
		return result, err
	})
}

// move points an AutoScaler at another Deployment.
func (r *round) move(c *contender, from, to types.NamespacedName) (outcome, error) {
	patch := fmt.Appendf(nil, `{"spec":{"targetRef":{"name":%q}}}`, to.Name)
	return r.persist(func() (outcome, error) {
		a, call := r.autoscaler(c, from), r.recorder.now()
		result, err := r.told(to, call, r.client.Patch(r.ctx, a, client.RawPatch(types.MergePatchType, patch)))
		if result == admitted {
			r.recorder.asked(to, call, c.label, op{verb: stored, waits: waits(a)})
			r.recorder.asked(from, call, c.label, op{verb: gone})
			r.keep(c, to)
		}
		return result, err
	})
}

// remove deletes an AutoScaler.
func (r *round) remove(c *contender) error {
	r.mu.Lock()
	key := r.stored[c]
	delete(r.stored, c)
	r.mu.Unlock()
	call := r.recorder.now()
	if err := r.client.Delete(r.ctx, r.autoscaler(c, key), client.Preconditions{UID: &c.uid}); err != nil {
		return fmt.Errorf("deleting %s: %w", c.label, err)
	}
	r.recorder.asked(key, call, c.label, op{verb: gone})
	return nil
}

func (r *round) keep(c *contender, key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored[c] = key
}

// persist tries until there is an answer.
func (r *round) persist(try func() (outcome, error)) (outcome, error) {
	for {
		result, err := try()
		r.count(result)
		if err != nil || result != unanswered {
			return result, err
		}
		after(r.ctx, 100*time.Millisecond)
		if r.ctx.Err() != nil {
			return "", r.timedOut("no answer to a client")
		}
	}
}

var (
	holderNamed  = regexp.MustCompile(`the replica count of Deployment "[^"]+" is held by AutoScaler "([^"]+)"`)
	pendingNamed = regexp.MustCompile(`the replica count of Deployment "[^"]+" is being claimed by AutoScaler "([^"]+)"`)
	earlierNamed = regexp.MustCompile(`AutoScaler "([^"]+)" was created earlier`)
	hpaNamed     = regexp.MustCompile(`HorizontalPodAutoscaler "([^"]+)" already scales`)
)

// told sorts the answer to a client, and records a refusal.
func (r *round) told(key types.NamespacedName, call int64, err error) (outcome, error) {
	switch {
	case err == nil:
		return admitted, nil
	case apierrors.IsAlreadyExists(err):
		return nameTaken, nil
	case apierrors.IsInternalError(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return unanswered, nil
	}
	for _, refusal := range []struct {
		pattern *regexp.Regexp
		outcome outcome
		verb    verb
	}{
		{holderNamed, refusedHeld, refused}, {pendingNamed, refusedHeld, refusedPending}, {earlierNamed, refusedLine, refusedInLine}, {hpaNamed, refusedForHPA, refusedByHPA},
	} {
		if m := refusal.pattern.FindStringSubmatch(err.Error()); m != nil && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) {
			r.recorder.asked(key, call, "", op{verb: refusal.verb, name: m[1]})
			return refusal.outcome, nil
		}
	}
	return "", fmt.Errorf("an answer that nobody should get: %w", err)
}

// look reads a binding as an independent client.
func (r *round) look(key types.NamespacedName) error {
	var b v1alpha1.ScaleBinding
	call := r.recorder.now()
	if err := client.IgnoreNotFound(r.client.Get(r.ctx, key, &b)); err != nil {
		return err
	}
	o := op{verb: read, owner: string(b.Spec.OwnerUID), epoch: b.Spec.Epoch}
	if b.Spec.OwnerRef != nil {
		o.name = b.Spec.OwnerRef.Name
	}
	r.recorder.asked(key, call, "", o)
	return nil
}

// await waits until the watch has seen something of a Deployment.
func (r *round) await(key types.NamespacedName, what string, ask func(*target) bool) error {
	for {
		ok, changed := r.recorder.seen(func() bool { return ask(r.recorder.targets[key]) })
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return r.timedOut(fmt.Sprintf("%s: %s", key.Name, what))
		}
	}
}

func (r *round) timedOut(what string) error {
	return fmt.Errorf("the round's deadline passed: %s: %w", what, context.Cause(r.ctx))
}

// holds waits until a contender holds a Deployment, confirmed, and has its count.
func (r *round) holds(c *contender, key types.NamespacedName) error {
	err := r.await(key, c.label+" holds it, and its count is written", func(t *target) bool {
		b := t.binding()
		return b.owner == c.uid && b.confirmed && t.deployment().replicas == last(c.counts)
	})
	return errors.Join(err, r.look(key))
}

// free waits until nobody holds a Deployment.
func (r *round) free(key types.NamespacedName) error {
	return r.await(key, "it is released", func(t *target) bool { return t.binding().owner == "" })
}

// exactlyOne gives the contender that was admitted, if there is just one.
func exactlyOne(contenders []*contender, outcomes []outcome) (*contender, error) {
	var winner *contender
	for i, c := range contenders {
		switch {
		case outcomes[i] == admitted && winner != nil:
			return nil, fmt.Errorf("both %s and %s were admitted", winner.label, c.label)
		case outcomes[i] == admitted:
			winner = c
		}
	}
	if winner == nil {
		return nil, fmt.Errorf("none was admitted: %v", outcomes)
	}
	return winner, nil
}

// atOnce starts all of these together and waits for all.
func atOnce(all ...func() error) error {
	errs := make([]error, len(all))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { <-start; errs[i] = f() })
	}
	close(start)
	group.Wait()
	return errors.Join(errs...)
}

// end removes what is left of the round and waits until all is free. The Deployments
// go last: then every write that there was has been seen.
func (r *round) end() error {
	var errs []error
	for c := range r.stored {
		errs = append(errs, r.remove(c))
	}
	if r.hpa != nil {
		errs = append(errs, client.IgnoreNotFound(r.client.Delete(r.ctx, r.hpa)))
	}
	for _, key := range r.targets {
		errs = append(errs, r.free(key), r.look(key),
			r.client.Delete(r.ctx, builders.Deployment(key.Namespace, key.Name, 0)),
			r.await(key, "its deletion is seen", func(t *target) bool { return t.deployment().deleted }))
	}
	return errors.Join(append(errs, r.recorded())...)
}

// recorded waits until the proxies have recorded what the watches saw: those may be
// first to know of a write.
func (r *round) recorded() error {
	for _, key := range r.targets {
		if err := r.await(key, "all that the watches saw was written through a proxy", (*target).complete); err != nil {
			return err
		}
	}
	return nil
}
