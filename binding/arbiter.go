package binding

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// DefaultGrace is how long a claim made at admission counts as alive although
// its owner is not in storage: the API server's admission deadline of at most
// 30 s, and a margin.
const DefaultGrace = 45 * time.Second

// +kubebuilder:rbac:groups=autoscale.example.com,resources=scalebindings,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=autoscale.example.com,resources=scalebindings/status,verbs=update

// Arbiter is the only code that writes the ownership of a ScaleBinding.
type Arbiter struct {
	// Live reads from the API server, never from a cache.
	Live client.Reader
	// Writer writes ScaleBindings.
	Writer client.Client
	// Clock gives the time of a claim.
	Clock clock.PassiveClock
	// Grace of a claim whose owner is not in storage; see DefaultGrace.
	Grace time.Duration
	// Managers finds other replica managers of a Deployment.
	Managers ManagerFinder
	// Usable says whether an AutoScaler's spec can be evaluated. What cannot neither
	// stands in line nor keeps a claim that was never confirmed. It must be what the
	// reconciler goes by, or a replica count is kept for one that will never write it.
	Usable func(a *v1alpha1.AutoScaler) bool
}

// ManagerFinder looks live, never in a cache, for another replica manager of a
// Deployment, and gives a *ManagerError where there is one.
type ManagerFinder interface {
	FindLive(ctx context.Context, namespace, target string) error
}

// Claimant is an AutoScaler that asks for the replica count of a Deployment of
// its namespace.
type Claimant struct {
	Namespace, Name string
	UID             types.UID
	// Target is the Deployment's name.
	Target string
	// By is the user on whose request the claim is made.
	By string
	// Anew says that the claim is for a spec that is not stored yet: a binding that
	// the claimant still holds from before starts a new grace, lest it be freed for
	// what is stored now.
	Anew bool
	// Seen says that a binding of the target is known to exist: Claim reads it before
	// it writes. Otherwise it tries to create one first.
	Seen bool
}

// ClaimantOf is the claimant that an AutoScaler is.
func ClaimantOf(a *v1alpha1.AutoScaler, by string) Claimant {
	return Claimant{Namespace: a.Namespace, Name: a.Name, UID: a.UID, Target: a.Spec.TargetRef.Name, By: by}
}

// HeldError says that another AutoScaler owns the replica count.
type HeldError struct {
	Namespace, Target, Holder string
	// Pending: the holder's claim is not confirmed; it may be on its way into
	// storage, or have been refused after its claim.
	Pending bool
	// InLine: nobody holds it, and that AutoScaler takes it next.
	InLine bool
}

// Waiting is what there is to say to one that stands by anyway: not how to wait.
func (e *HeldError) Waiting() string {
	switch {
	case e.InLine:
		return fmt.Sprintf("AutoScaler %q was created earlier, asks for the replica count of Deployment %q too, and takes it next", e.Holder, e.Target)
	case e.Pending:
		return fmt.Sprintf("the replica count of Deployment %q is being claimed by AutoScaler %q; if that one is not created, the claim ends by itself within a minute", e.Target, e.Holder)
	}
	return fmt.Sprintf("the replica count of Deployment %q is held by AutoScaler %q (kubectl -n %s get scalebinding %s)", e.Target, e.Holder, e.Namespace, e.Target)
}

// Error names the holder and the way out.
func (e *HeldError) Error() string {
	switch {
	case e.InLine:
		return fmt.Sprintf("AutoScaler %q was created earlier, asks for the replica count of Deployment %q too, and takes it next; delete that AutoScaler, set its dryRun, or point it at another Deployment first", e.Holder, e.Target)
	case e.Pending:
		return fmt.Sprintf("the replica count of Deployment %q is being claimed by AutoScaler %q; if that one is not created, the claim ends by itself within a minute: try again then", e.Target, e.Holder)
	}
	return fmt.Sprintf("the replica count of Deployment %q is held by AutoScaler %q; delete that AutoScaler, set its dryRun, or point it at another Deployment first, or set claimPolicy: Wait here to take over when it goes (kubectl -n %s get scalebinding %s)", e.Target, e.Holder, e.Namespace, e.Target)
}

// Check says, without writing anything, whether Claim would succeed now: nil or a
// *HeldError. Another error means that it cannot be told.
func (a *Arbiter) Check(ctx context.Context, c Claimant) error {
	b, err := a.get(ctx, c.Namespace, c.Target)
	if err != nil || b == nil {
		return err
	}
	return a.claimable(ctx, b, c)
}

// CheckIn is Check by what a cache has. What that says may be of the past, so it is
// good for waiting on, as long as its next event is waited for too, and for nothing
// else.
func (a *Arbiter) CheckIn(ctx context.Context, cached client.Reader, c Claimant) error {
	by := *a
	by.Live = cached
	return by.Check(ctx, c)
}

// Claim makes c the owner of its target's replica count and returns the binding:
// it creates the binding, takes a free one, or takes over from an owner that is
// gone. It is idempotent. Another owner that is alive gives a *HeldError.
//
// A first claim is one write and no read. Who claimed, and when, is in the spec;
// the history in the status gets it when the claim is confirmed.
func (a *Arbiter) Claim(ctx context.Context, c Claimant) (*v1alpha1.ScaleBinding, error) {
	if !c.Seen {
		b, err := a.create(ctx, c)
		if !apierrors.IsAlreadyExists(err) {
			return b, err
		}
	}
	var claimed *v1alpha1.ScaleBinding
	err := retry.OnError(retry.DefaultRetry, lostRace, func() error {
		b, err := a.get(ctx, c.Namespace, c.Target)
		if err != nil {
			return err
		}
		if b == nil {
			claimed, err = a.create(ctx, c)
			return err
		}
		if b.Spec.OwnerUID == c.UID && !c.Anew {
			claimed = b
			return nil
		}
		if err := a.claimable(ctx, b, c); err != nil {
			return err
		}
		claimed, err = a.take(ctx, b, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// lostRace: somebody else wrote the binding since it was read. The claim starts
// anew from what is there now.
func lostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

func (a *Arbiter) get(ctx context.Context, namespace, name string) (*v1alpha1.ScaleBinding, error) {
	var b v1alpha1.ScaleBinding
	err := a.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &b)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ScaleBinding %s/%s: %w", namespace, name, err)
	case b.DecodeError != "":
		return nil, &BrokenError{namespace, name, "it is not readable: " + b.DecodeError}
	case b.Free() != (b.Spec.OwnerRef == nil):
		return nil, &BrokenError{namespace, name, "ownerRef and ownerUID are not set together"}
	case b.Spec.Epoch >= v1alpha1.MaxEpoch:
		return nil, &BrokenError{namespace, name, "its epoch cannot grow any more"}
	}
	return &b, nil
}

// BrokenError says that a ScaleBinding was changed by hand into something that
// cannot be used.
type BrokenError struct{ Namespace, Name, Why string }

// Error names the way out.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("ScaleBinding %q cannot be used: %s; delete it, and the claim is made anew (kubectl -n %s delete scalebinding %s)", e.Name, e.Why, e.Namespace, e.Name)
}

func (a *Arbiter) create(ctx context.Context, c Claimant) (*v1alpha1.ScaleBinding, error) {
	b := &v1alpha1.ScaleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Target},
		Spec:       v1alpha1.ScaleBindingSpec{TargetRef: v1alpha1.TargetReference{Name: c.Target}},
	}
	a.own(b, c)
	if err := a.Writer.Create(ctx, b); err != nil {
		return nil, err
	}
	return b, nil
}

func (a *Arbiter) take(ctx context.Context, b *v1alpha1.ScaleBinding, c Claimant) (*v1alpha1.ScaleBinding, error) {
	reason := "claimed a free binding"
	switch {
	case b.Spec.OwnerUID == c.UID:
		reason = "claimed anew"
	case !b.Free():
		reason = fmt.Sprintf("took over from AutoScaler %s, which no longer asks for it", b.Spec.OwnerRef.Name)
	}
	a.own(b, c)
	if err := a.Writer.Update(ctx, b); err != nil {
		return nil, err
	}
	return a.note(ctx, b, v1alpha1.PhasePending, c.By, reason)
}

func (a *Arbiter) own(b *v1alpha1.ScaleBinding, c Claimant) {
	at := metav1.NewTime(a.Clock.Now())
	b.Spec.OwnerRef = &v1alpha1.OwnerReference{Name: c.Name}
	b.Spec.OwnerUID = c.UID
	b.Spec.TargetUID = ""
	b.Spec.ClaimedBy = c.By
	b.Spec.ClaimedAt = &at
	b.Spec.Guard = v1alpha1.GuardOpen
	b.Spec.Epoch++
}
