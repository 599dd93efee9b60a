//go:build integration

package race

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// scenarios are the races, by the first part of their objects' names.
var scenarios = []struct {
	name string
	run  func(*round) error
}{
	{"pair", (*round).pair},
	{"hpa", (*round).besideHPA},
	{"move", (*round).moved},
	{"again", (*round).deletedAndCreated},
	{"wait", (*round).handedOver},
}

// pair: two or three AutoScalers are created at once for one Deployment. Exactly one
// is admitted; the others are told by whom the Deployment is held.
func (r *round) pair() error {
	key, err := r.deployment("")
	if err != nil {
		return err
	}
	contenders := []*contender{r.contender("a", 3, key), r.contender("b", 5, key), r.contender("c", 7, key)}[:2+r.random.IntN(2)]
	outcomes := make([]outcome, len(contenders))
	var creations []func() error
	for i, c := range contenders {
		creations = append(creations, func() (err error) { outcomes[i], err = r.create(c, key); return err })
	}
	if err := atOnce(append(creations, func() error { return r.look(key) })...); err != nil {
		return err
	}
	winner, err := exactlyOne(contenders, outcomes)
	if err != nil {
		return err
	}
	return r.holds(winner, key)
}

// besideHPA: an AutoScaler and an HPA are created at once. Either is refused for the
// other's sake, or both are stored: then the AutoScaler says so and writes nothing
// until the HPA is gone.
func (r *round) besideHPA() error {
	key, err := r.deployment("")
	if err != nil {
		return err
	}
	c := r.contender("a", 3, key)
	var result outcome
	err = atOnce(
		func() (err error) { result, err = r.create(c, key); return err },
		func() error { return r.createHPA(key) },
	)
	if err != nil {
		return err
	}
	if r.hpa != nil && result == admitted {
		if err := r.holdsBack(c, key); err != nil {
			return err
		}
	}
	if err := r.deleteHPA(key); err != nil {
		return err
	}
	if result != admitted {
		if result, err = r.create(c, key); err != nil || result != admitted {
			return errors.Join(err, fmt.Errorf("after the HPA was deleted: %s", result))
		}
	}
	return r.holds(c, key)
}

// createHPA creates an HPA, at once or right before the first write, unless that is
// refused because the Deployment is held.
func (r *round) createHPA(key types.NamespacedName) error {
	after(r.ctx, time.Duration(r.random.IntN(60))*time.Millisecond)
	if r.random.IntN(4) == 0 {
		if err := r.await(key, "it is about to be written", func(t *target) bool { return t.aboutToWrite > 0 }); err != nil {
			return err
		}
	}
	hpa, call := builders.HPA(key.Namespace, key.Name, key.Name), r.recorder.now()
	err := r.client.Create(r.ctx, hpa)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		r.count("HPA refused")
		return nil
	case err != nil:
		return err
	}
	r.hpa = hpa
	r.recorder.asked(key, call, "", op{verb: hpaStored})
	return nil
}

func (r *round) deleteHPA(key types.NamespacedName) error {
	if r.hpa == nil {
		return nil
	}
	call := r.recorder.now()
	if err := r.client.Delete(r.ctx, r.hpa); err != nil {
		return err
	}
	r.recorder.asked(key, call, "", op{verb: hpaGone})
	r.hpa = nil
	return nil
}

// holdsBack: the AutoScaler says that an HPA is in its way. Given another demand, it
// evaluates it and writes nothing.
func (r *round) holdsBack(c *contender, key types.NamespacedName) error {
	r.count("both stored")
	conflicting := func(a *v1alpha1.AutoScaler) bool {
		bound := condition(a, v1alpha1.ConditionBound)
		return bound.Status == metav1.ConditionFalse && bound.Reason == v1alpha1.ReasonConflictingHPA && bound.ObservedGeneration == a.Generation
	}
	if err := r.says(c, key, "that an HPA is in its way", conflicting); err != nil {
		return err
	}
	quiet := span{call: r.recorder.now()}
	r.recorder.counts(c, 9)
	a := r.autoscaler(c, key)
	a.Spec.Metrics[0].TargetPerReplica = perReplica(9)
	patch := client.MergeFrom(r.autoscaler(c, key))
	if err := r.edit(a, patch); err != nil {
		return err
	}
	generation := a.Generation
	if err := r.says(c, key, "that the HPA is in the way of its new spec too", func(a *v1alpha1.AutoScaler) bool {
		return a.Generation == generation && conflicting(a)
	}); err != nil {
		return err
	}
	quiet.ret = r.recorder.now()
	r.recorder.on(key, func(t *target) { t.quiet = append(t.quiet, quiet) })
	return nil
}

// edit patches an AutoScaler without touching its claim.
func (r *round) edit(a *v1alpha1.AutoScaler, patch client.Patch) error {
	_, err := r.persist(func() (outcome, error) {
		changed := a.DeepCopy()
		err := r.client.Patch(r.ctx, changed, patch)
		if apierrors.IsInternalError(err) || apierrors.IsTimeout(err) {
			return unanswered, nil
		}
		*a = *changed
		return admitted, err
	})
	return err
}

// says waits for a condition of an AutoScaler.
func (r *round) says(c *contender, key types.NamespacedName, what string, ask func(*v1alpha1.AutoScaler) bool) error {
	name := types.NamespacedName{Namespace: key.Namespace, Name: c.name}
	return r.await(key, c.label+" says "+what, func(*target) bool {
		a := r.recorder.autoscalers[name]
		return a != nil && a.UID == c.uid && ask(a)
	})
}

// moved: targetRef is pointed at a Deployment that is held, or that another one is
// pointed at in the same moment.
func (r *round) moved() error {
	x, errX := r.deployment("-x")
	y, errY := r.deployment("-y")
	z, errZ := r.deployment("-z")
	if err := errors.Join(errX, errY, errZ); err != nil {
		return err
	}
	a, b := r.contender("a", 3, x, y, z), r.contender("b", 5, x, y, z)
	var outcomes [2]outcome
	err := atOnce(
		func() (err error) { outcomes[0], err = r.create(a, x); return err },
		func() (err error) { outcomes[1], err = r.create(b, y); return err },
	)
	if err != nil || outcomes != [2]outcome{admitted, admitted} {
		return errors.Join(err, fmt.Errorf("two AutoScalers of two Deployments: %v", outcomes))
	}
	if r.random.IntN(3) == 0 {
		return r.ontoTaken(b, a, y, x)
	}
	return r.ontoContested(a, b, x, y, z)
}

// ontoTaken: who holds y wants x, which is held.
func (r *round) ontoTaken(mover, holder *contender, y, x types.NamespacedName) error {
	result, err := r.move(mover, y, x)
	if err != nil || result != refusedHeld {
		return errors.Join(err, fmt.Errorf("moved onto a Deployment that is held: %s", result))
	}
	return errors.Join(r.holds(holder, x), r.holds(mover, y))
}

// ontoContested: who holds x and who holds y both want z. One gets it, and lets its
// old one go; the other keeps what it has.
func (r *round) ontoContested(a, b *contender, x, y, z types.NamespacedName) error {
	var outcomes [2]outcome
	err := atOnce(
		func() (err error) { outcomes[0], err = r.move(a, x, z); return err },
		func() (err error) { outcomes[1], err = r.move(b, y, z); return err },
		func() error { return r.look(z) },
	)
	if err != nil {
		return err
	}
	winner, err := exactlyOne([]*contender{a, b}, outcomes[:])
	if err != nil {
		return err
	}
	if winner == a {
		return errors.Join(r.holds(a, z), r.holds(b, y), r.free(x))
	}
	return errors.Join(r.holds(b, z), r.holds(a, x), r.free(y))
}

// deletedAndCreated: the holder is deleted while another, or one of the same name,
// is created; or the Deployment is replaced under its holder.
func (r *round) deletedAndCreated() error {
	key, err := r.deployment("")
	if err != nil {
		return err
	}
	a := r.contender("a", 3, key)
	if result, err := r.create(a, key); err != nil || result != admitted {
		return errors.Join(err, fmt.Errorf("the first one: %s", result))
	}
	if err := r.someMoment(a, key); err != nil {
		return err
	}
	switch r.random.IntN(3) {
	case 0:
		return r.replaceTarget(a, key)
	case 1:
		return r.succeed(a, r.contender("b", 5, key), key)
	default:
		return r.succeed(a, r.contender("a'", 5, key), key) // the same name
	}
}

// someMoment waits until the holder is at rest, or in the middle of its first write,
// or for no matter what.
func (r *round) someMoment(holder *contender, key types.NamespacedName) error {
	switch r.random.IntN(4) {
	case 0:
		return r.holds(holder, key)
	case 1:
		after(r.ctx, time.Duration(r.random.IntN(100))*time.Millisecond)
		return nil
	default:
		return r.await(key, holder.label+" is about to be written for", func(t *target) bool { return t.aboutToWrite > 0 })
	}
}

// succeed deletes the holder while a successor tries until it is admitted.
func (r *round) succeed(holder, successor *contender, key types.NamespacedName) error {
	err := atOnce(
		func() error { return r.remove(holder) },
		func() error {
			for r.ctx.Err() == nil {
				if result, err := r.create(successor, key); err != nil || result == admitted {
					return err
				}
				after(r.ctx, 200*time.Millisecond)
			}
			return r.timedOut("the successor is admitted")
		},
		func() error { return r.look(key) },
	)
	return errors.Join(err, r.holds(successor, key))
}

// replaceTarget deletes the Deployment and creates one of the same name.
func (r *round) replaceTarget(holder *contender, key types.NamespacedName) error {
	if err := r.client.Delete(r.ctx, builders.Deployment(key.Namespace, key.Name, 0)); err != nil {
		return err
	}
	d := builders.Deployment(key.Namespace, key.Name, 1)
	if err := r.client.Create(r.ctx, d); err != nil {
		return err
	}
	err := r.await(key, "it is confirmed for the new Deployment", func(t *target) bool { return t.binding().targetUID == d.UID })
	return errors.Join(err, r.holds(holder, key))
}
