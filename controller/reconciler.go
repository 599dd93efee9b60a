package controller

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// FieldManager is the name under which the operator writes. The managedFields of
// a Deployment tell by it whether a change of the replica count was ours.
const FieldManager = "autoscale-operator"

// conflictDelay is the wait before a decision that lost a race is made anew, from
// facts that the cache has had time to see.
const conflictDelay = time.Second

// Sampler asks the metric sources, and keeps the newest answers. An evaluation only
// reads those: no worker waits for the network.
type Sampler interface {
	Subscribe(id prometheus.Subscriber, interval time.Duration, measures []prometheus.Measure)
	Unsubscribe(id prometheus.Subscriber)
	// Samples never fails: a sample that cannot be used says why. It is not ready while
	// something has yet to be asked for the first time.
	Samples(id prometheus.Subscriber, now time.Time) (samples []scaling.Sample, at []prometheus.Arrival, ready bool)
}

// Managers knows the other replica managers.
type Managers interface {
	// Find looks one up by index, and gives a *binding.ManagerError where there is one.
	Find(ctx context.Context, namespace, target string) error
	// OnChange has f called with each Deployment that one begins or ceases to target.
	OnChange(f func(namespace, target string))
}

// EventRecorder records an event about an object.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// +kubebuilder:rbac:groups=autoscale.example.com,resources=autoscalers;metricprofiles,verbs=get;list;watch
// +kubebuilder:rbac:groups=autoscale.example.com,resources=autoscalers/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments/scale,verbs=get;update
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=autoscale-operator-system,resources=leases,verbs=get;create;update

// Reconciler keeps the Deployments of AutoScalers at the replica count that their
// policy decides.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client   client.Client
	Arbiter  *binding.Arbiter
	Managers Managers
	// Sampler is to call Wake with each answer.
	Sampler Sampler
	// Telemetry tells of what was decided.
	Telemetry *Telemetry
	Events    EventRecorder
	Limits    v1alpha1.Limits
	Clock     clock.PassiveClock
	// Jitter spreads re-evaluations: it returns a wait of at least its argument.
	Jitter func(time.Duration) time.Duration

	records  records
	turns    turns
	arrivals arrivals
	verdicts verdicts
}

// evaluation is what one reconcile knows; phases fill it in order.
type evaluation struct {
	now        time.Time
	paused     bool                 // at this time
	before     *v1alpha1.AutoScaler // as read
	autoscaler *v1alpha1.AutoScaler // its status is being rewritten
	target     target
	binding    *v1alpha1.ScaleBinding // names this AutoScaler; nil: none does
	holding    *binding.Holding       // nil: must not write
	// managersUnknown: why other replica managers could not be looked for.
	managersUnknown error
	policy          scaling.Policy
	schedule        spec.Schedule // as it is at this time
	samples         []scaling.Sample
	decision        scaling.Decision
	record          record
	// scaled: the count was written in this evaluation; scaleFailure: it was tried.
	scaled, scaleFailure bool
	// looked lists the conditions that this evaluation has set.
	looked []string
	// after is the wait until the next evaluation.
	after time.Duration
}

// phase adds to an evaluation; done ends it early.
type phase func(ctx context.Context, e *evaluation) (done bool, err error)

// Reconcile evaluates one AutoScaler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	a, err := r.read(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait, err := r.reap(ctx, req.NamespacedName, a)
	switch {
	case a == nil && err != nil:
		return ctrl.Result{}, err
	case a == nil:
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	e := r.begin(a)
	err = r.run(ctx, e, err)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // shutting down; the next leader evaluates anew
	}
	r.Telemetry.explain(log.FromContext(ctx), e)
	if statusErr := r.writeStatus(ctx, e); err == nil {
		err = statusErr
	} else if statusErr != nil && !apierrors.IsConflict(statusErr) {
		log.FromContext(ctx).Error(statusErr, "the status that tells of a failure was not written either")
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err // the queue backs off
	case wait > 0:
		e.after = min(e.after, wait)
	}
	return r.again(e.after), nil
}

// read gives the AutoScaler, or nil when it is gone or going.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*v1alpha1.AutoScaler, error) {
	var a v1alpha1.AutoScaler
	err := r.Client.Get(ctx, key, &a)
	if apierrors.IsNotFound(err) || err == nil && a.DeletionTimestamp != nil {
		r.records.forget(key)
		r.Sampler.Unsubscribe(subscriber(key))
		r.Telemetry.forget(key)
		return nil, nil
	}
	return &a, err
}

func (r *Reconciler) begin(a *v1alpha1.AutoScaler) *evaluation {
	r.Telemetry.begins(a)
	next := a.DeepCopy()
	next.Status.ObservedGeneration = a.Generation
	now := r.Clock.Now()
	return &evaluation{
		now:        now,
		paused:     a.PausedAt(now),
		before:     a,
		autoscaler: next,
		record:     r.records.of(a),
		after:      spec.PollInterval(a),
	}
}

// run goes through the phases, unless something failed before them.
func (r *Reconciler) run(ctx context.Context, e *evaluation, err error) error {
	phases := []phase{r.validate, r.findTarget, r.holdContract, r.sample, r.decide, r.scale}
	for done := false; err == nil && !done && len(phases) > 0; phases = phases[1:] {
		done, err = phases[0](ctx, e)
	}
	if err == nil {
		err = r.settle(ctx, e)
	}
	e.plan()
	return e.failed(err)
}

// failed says on the object why an evaluation failed, and that nothing is written
// for now. It returns what is to be retried at once, with back-off.
func (e *evaluation) failed(err error) error {
	switch {
	case err == nil, apierrors.IsConflict(err), e.scaleFailure:
		return err
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.hold(v1alpha1.ReasonTargetTerminating, v1alpha1.ReasonTargetTerminating, "the namespace is being deleted")
		err = nil
	case apierrors.IsForbidden(err):
		// No retry mends a missing permission: say so, and look again at the next poll.
		e.hold(v1alpha1.ReasonForbidden, v1alpha1.ReasonForbidden, "the operator's account lacks a permission: "+tellable(err))
		err = nil
	default:
		e.hold(v1alpha1.ReasonEvaluationFailed, v1alpha1.ReasonEvaluationFailed, "the last evaluation failed and is tried again: "+tellable(err))
	}
	e.notEvaluated()
	return err
}

// tellable is an error as people may see it in a status: what the API server
// said, or else that it could not be asked. A client's own errors hold addresses.
func tellable(err error) string {
	var status apierrors.APIStatus
	var stale staleError
	var broken *binding.BrokenError
	switch {
	case errors.As(err, &broken):
		return broken.Error()
	case errors.As(err, &status):
		return status.Status().Message
	case errors.As(err, &stale), errors.Is(err, binding.ErrLost):
		return err.Error()
	}
	return "the API server could not be asked; the operator's log has the error"
}

// validate refuses a spec that was stored past admission. It waits for a fix: the
// spec's change wakes the AutoScaler.
func (r *Reconciler) validate(ctx context.Context, e *evaluation) (bool, error) {
	errs := spec.ValidateAutoScaler(e.autoscaler, r.Limits)
	if len(errs) == 0 {
		return false, nil
	}
	r.Sampler.Unsubscribe(subscriber(nameOf(e.autoscaler)))
	message := errs.ToAggregate().Error()
	e.hold(v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonInvalidSpec, message)
	e.notEvaluated()
	e.nothingDecided()
	e.after = time.Hour
	return true, r.letGo(ctx, e.before, false)
}

// decide asks the policy.
func (r *Reconciler) decide(_ context.Context, e *evaluation) (bool, error) {
	e.record.recoverWrite(e)
	o := scaling.Observation{
		Now: e.now, Target: string(e.target.uid), Current: e.current(), Samples: e.samples,
	}
	e.decision, e.record.memory = scaling.Decide(&e.policy, &o, e.record.memory)
	if !e.decision.PendingDown {
		e.record.busy = e.now
	}
	if !e.decision.PendingUp {
		e.record.still = e.now
	}
	e.simulate()
	r.records.put(e.autoscaler, e.record)
	e.describe(&o)
	r.Telemetry.decided(e)
	return false, nil
}
