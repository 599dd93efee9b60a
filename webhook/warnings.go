package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// What is legal but worth knowing, in the order in which it is said. The command
// that a person typed shows it.
const (
	// The AutoScaler may wait (claimPolicy Wait) and does.
	warnBehindHolder  = "spec.claimPolicy: AutoScaler %q holds the replica count; this one stands by and takes over when that one goes"
	warnBehindInLine  = "spec.claimPolicy: AutoScaler %q takes the replica count next; this one stands by until that one goes"
	warnBehindManager = "spec.claimPolicy: %s %q scales the Deployment; this AutoScaler stands by and takes over when that is deleted"
	// It is admitted before its Deployment.
	warnTargetMissing = "spec.targetRef.name: there is no Deployment %q in namespace %q yet; the AutoScaler waits for it"
	// A Deployment at 0 is left alone.
	warnTargetAtZero = "spec.targetRef.name: Deployment %q is scaled to 0; it is left alone until somebody scales it to 1 or more"
	// Another writer may set the count back.
	warnReplicasSet = "spec.targetRef.name: spec.replicas of Deployment %q was last set by %s; if that applies it again, leave spec.replicas out of its manifest"
	// A dry run is compared with what does scale the Deployment.
	warnDryRunBeside = "spec.dryRun: %s %q scales the Deployment; this AutoScaler only recommends beside it"
	// The count will fall at once.
	warnAboveMax = "spec.maxReplicas: Deployment %q has %d replicas and will be scaled down to %d"
)

// Bounds of what one answer says; the API server cuts or drops what is beyond its own.
const (
	maxWarnings      = 16
	maxWarningLength = 256
)

// warnings says what is worth knowing of an AutoScaler that is admitted. It never
// fails a request: what cannot be looked up is left out.
func (v *AutoScalerValidator) warnings(ctx context.Context, a *v1alpha1.AutoScaler, r verdict) []string {
	var said []string
	if r.standsBy != "" {
		said = append(said, r.standsBy)
	}
	said = append(said, v.targetWarnings(ctx, a)...)
	said = append(said, specWarnings(a, v.Arbiter.Clock.Now())...)
	return append(said, r.hints...)
}

// targetWarnings looks at the Deployment and, for a dry run, at what scales it.
func (v *AutoScalerValidator) targetWarnings(ctx context.Context, a *v1alpha1.AutoScaler) []string {
	var said []string
	if a.Spec.DryRun {
		said = v.besideWarnings(ctx, a)
	}
	var d appsv1.Deployment
	switch err := v.get(ctx, targetOf(a), &d); {
	case apierrors.IsNotFound(err):
		return append(said, fmt.Sprintf(warnTargetMissing, a.Spec.TargetRef.Name, a.Namespace))
	case err != nil:
		log.FromContext(ctx).Error(err, "the Deployment could not be looked at for warnings")
		return said
	case d.Spec.Replicas != nil && *d.Spec.Replicas == 0:
		return append(said, fmt.Sprintf(warnTargetAtZero, d.Name))
	case a.Spec.DryRun:
		return said
	}
	others := slices.DeleteFunc(binding.ReplicaManagers(&d), func(name string) bool { return name == v.FieldManager })
	if len(others) > 0 {
		said = append(said, fmt.Sprintf(warnReplicasSet, d.Name, strings.Join(others, ", ")))
	}
	now := v.Arbiter.Clock.Now()
	// Schedules that cannot be read are refused, so there is no error here.
	in, err := spec.ScheduleAt(a, now)
	falls := err == nil && in.Freeze == scaling.FreezeNone && !a.PausedAt(now)
	if falls && d.Spec.Replicas != nil && *d.Spec.Replicas > in.MaxReplicas {
		said = append(said, fmt.Sprintf(warnAboveMax, d.Name, *d.Spec.Replicas, in.MaxReplicas))
	}
	return said
}

func (v *AutoScalerValidator) besideWarnings(ctx context.Context, a *v1alpha1.AutoScaler) []string {
	err := v.Managers.Find(ctx, a.Namespace, a.Spec.TargetRef.Name)
	var manager *binding.ManagerError
	switch {
	case errors.As(err, &manager):
		return []string{fmt.Sprintf(warnDryRunBeside, manager.Kind, manager.Name)}
	case err != nil:
		log.FromContext(ctx).Error(err, "other replica managers could not be looked for")
	}
	return nil
}

// said bounds the warnings and makes each one line, as they are sent.
func said(warnings []string) admission.Warnings {
	if more := len(warnings) - maxWarnings; more > 0 {
		warnings = append(slices.Clone(warnings[:maxWarnings]), fmt.Sprintf("and %d more warnings", more))
	}
	for i, w := range warnings {
		w = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, w)
		if len(w) > maxWarningLength {
			w = strings.ToValidUTF8(w[:maxWarningLength-len("...")], "") + "..."
		}
		warnings[i] = w
	}
	return warnings
}
