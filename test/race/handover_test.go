//go:build integration

package race

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func standingBy(a *v1alpha1.AutoScaler) { a.Spec.ClaimPolicy = v1alpha1.ClaimWait }

func waits(a *v1alpha1.AutoScaler) bool { return a.Spec.ClaimPolicy == v1alpha1.ClaimWait }

// handedOver: two AutoScalers stand by while a third holds the Deployment. When it is
// deleted one of them takes over, and when that is deleted the other. Where both were
// known to stand by, the earlier one comes first.
func (r *round) handedOver() error {
	key, err := r.deployment("")
	if err != nil {
		return err
	}
	holder := r.contender("a", 3, key)
	if result, err := r.create(holder, key); err != nil || result != admitted {
		return errors.Join(err, fmt.Errorf("the holder: %s", result))
	}
	waiters := []*contender{r.contender("b", 5, key), r.contender("c", 7, key)}
	var outcomes [2]outcome
	err = atOnce(
		func() (err error) { outcomes[0], err = r.create(waiters[0], key, standingBy); return err },
		func() (err error) { outcomes[1], err = r.create(waiters[1], key, standingBy); return err },
	)
	if err != nil || outcomes != [2]outcome{admitted, admitted} {
		return errors.Join(err, fmt.Errorf("two that stand by: %v", outcomes))
	}
	inOrder := r.random.IntN(2) == 0
	if inOrder {
		for _, c := range waiters {
			if err := r.standsBy(c, key); err != nil {
				return err
			}
		}
	} else if err := r.someMoment(holder, key); err != nil {
		return err
	}
	return r.inheritance(holder, waiters, key, inOrder)
}

func (r *round) standsBy(c *contender, key types.NamespacedName) error {
	return r.says(c, key, "that it stands by", func(a *v1alpha1.AutoScaler) bool {
		bound := condition(a, v1alpha1.ConditionBound)
		return bound.Status == metav1.ConditionFalse && bound.Reason == v1alpha1.ReasonWaitingForRelease
	})
}

// inheritance deletes the holder, and then its heir, beside a newcomer that does not
// wait.
func (r *round) inheritance(holder *contender, waiters []*contender, key types.NamespacedName, inOrder bool) error {
	newcomer := r.contender("d", 9, key)
	var result outcome
	err := atOnce(
		func() error { return r.remove(holder) },
		func() error { return r.look(key) },
		func() (err error) {
			if inOrder {
				result, err = r.create(newcomer, key)
			}
			return err
		},
	)
	if err != nil {
		return err
	}
	if result == admitted {
		// The replica that admitted it had not seen those that stand by yet. That is
		// unfair to them, but no harm: it holds the Deployment as any other would.
		r.count("past the line")
		if err := errors.Join(r.holds(newcomer, key), r.remove(newcomer)); err != nil {
			return err
		}
	}
	heir, err := r.heir(waiters, key)
	if err != nil {
		return err
	}
	if first := r.earlier(waiters); inOrder && heir != first {
		return fmt.Errorf("%s took over although %s stood by before it", heir.label, first.label)
	}
	next := waiters[0]
	if heir == next {
		next = waiters[1]
	}
	return errors.Join(r.holds(heir, key), r.remove(heir), r.holds(next, key))
}

// heir waits until one of those that stand by is confirmed.
func (r *round) heir(waiters []*contender, key types.NamespacedName) (*contender, error) {
	var heir *contender
	err := r.await(key, "one of those that stand by takes over", func(t *target) bool {
		for _, c := range waiters {
			if b := t.binding(); b.owner == c.uid && b.confirmed {
				heir = c
			}
		}
		return heir != nil
	})
	return heir, err
}

// earlier is the one that was created first, or has the smaller UID.
func (r *round) earlier(waiters []*contender) *contender {
	created := func(c *contender) *v1alpha1.AutoScaler {
		return r.recorder.autoscalers[types.NamespacedName{Namespace: r.namespace, Name: c.name}]
	}
	var first *contender
	_, _ = r.recorder.seen(func() bool {
		a, b := created(waiters[0]), created(waiters[1])
		first = waiters[0]
		if b.CreationTimestamp.Before(&a.CreationTimestamp) || b.CreationTimestamp.Equal(&a.CreationTimestamp) && b.UID < a.UID {
			first = waiters[1]
		}
		return true
	})
	return first
}
