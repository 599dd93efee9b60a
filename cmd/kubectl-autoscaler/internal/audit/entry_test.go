package audit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func wrote(manager string, ago time.Duration) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Time: new(metav1.NewTime(noon.Add(-ago))), FieldsType: "FieldsV1",
		FieldsV1: fields(`{"f:spec":{"f:replicas":{}}}`),
	}
}

func fields(text string) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	f.SetRawString(text)
	return f
}

func aDeployment(writers ...metav1.ManagedFieldsEntry) *deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: "web", UID: "d", ManagedFields: writers}}
	d.Spec.Replicas = new(int32(4))
	return deploymentOf(d)
}

func aBinding(phase v1alpha1.ScaleBindingPhase) *v1alpha1.ScaleBinding {
	b := &v1alpha1.ScaleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: "web"}}
	b.Spec = v1alpha1.ScaleBindingSpec{
		OwnerRef: &v1alpha1.OwnerReference{Name: "web"}, OwnerUID: "a", TargetUID: "d", Epoch: 3, Guard: v1alpha1.GuardClosed, ClaimedBy: "alice",
	}
	b.Status = v1alpha1.ScaleBindingStatus{Phase: phase, Epoch: 3}
	return b
}

func anAutoScaler(name, uid string, change func(*v1alpha1.AutoScaler)) *v1alpha1.AutoScaler {
	a := &v1alpha1.AutoScaler{ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: name}}
	a.UID = "b"
	if uid != "" {
		a.UID = "a"
	}
	if change != nil {
		change(a)
	}
	return a
}

func aManager(kind, name, madeBy string) *binding.ManagerError {
	return &binding.ManagerError{Namespace: "production", Target: "web", Kind: kind, Name: name, MadeBy: madeBy}
}

func TestTheStateOfADeployment(t *testing.T) {
	contended := anAutoScaler("web", "a", func(a *v1alpha1.AutoScaler) {
		a.Status.Contention = &v1alpha1.Contention{Manager: "argocd", From: 4, To: 1, Changes: 2, Time: metav1.NewTime(noon)}
	})
	dry := anAutoScaler("trial", "", func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true })
	free := aBinding(v1alpha1.PhaseFree)
	free.Spec.OwnerRef, free.Spec.OwnerUID = nil, ""
	old := aBinding(v1alpha1.PhaseHeld)
	old.Status.Epoch = 2
	waits := anAutoScaler("web", "a", func(a *v1alpha1.AutoScaler) { a.Spec.ClaimPolicy = v1alpha1.ClaimWait })
	claimed := aBinding(v1alpha1.PhaseContended) // by an AutoScaler that has never had the count
	claimed.Spec.TargetUID, claimed.Spec.Guard = "", v1alpha1.GuardOpen
	hpa, scaled := aManager("HorizontalPodAutoscaler", "web", ""), aManager("ScaledObject", "web", "")
	for name, tc := range map[string]struct {
		facts facts
		want  State
		why   []string
		owner string
	}{
		"nobody has it":                    {facts{}, Unowned, nil, ""},
		"its binding is free":              {facts{binding: free}, Unowned, nil, ""},
		"a dry run has nothing":            {facts{autoscalers: []*v1alpha1.AutoScaler{dry}}, Unowned, []string{"AutoScaler trial is a dry run"}, ""},
		"an AutoScaler holds it":           {facts{binding: aBinding(v1alpha1.PhaseHeld), autoscalers: []*v1alpha1.AutoScaler{anAutoScaler("web", "a", nil)}}, Held, nil, "AutoScaler/web"},
		"the phase is of an earlier owner": {facts{binding: old}, Pending, []string{"AutoScaler web has claimed it: Pending"}, "AutoScaler/web"},
		"it is claimed, and no more": {
			facts{binding: aBinding(v1alpha1.PhaseOrphaned)}, Pending, []string{"AutoScaler web has claimed it: Orphaned"}, "AutoScaler/web",
		},
		"another one waits": {
			facts{binding: aBinding(v1alpha1.PhaseHeld), autoscalers: []*v1alpha1.AutoScaler{anAutoScaler("next", "", nil)}},
			Held, []string{"AutoScaler next does not hold it"}, "AutoScaler/web",
		},
		"an HPA has it":                    {facts{managers: []*binding.ManagerError{hpa}}, Managed, nil, "HorizontalPodAutoscaler/web"},
		"a ScaledObject and the HPA of it": {facts{managers: []*binding.ManagerError{scaled, aManager("HorizontalPodAutoscaler", "keda-hpa-web", `ScaledObject "web"`)}}, Managed, nil, "ScaledObject/web"},
		"two HPAs": {
			facts{managers: []*binding.ManagerError{hpa, aManager("HorizontalPodAutoscaler", "web-2", "")}},
			Contested, []string{"HorizontalPodAutoscaler/web and HorizontalPodAutoscaler/web-2 target it"}, "HorizontalPodAutoscaler/web and HorizontalPodAutoscaler/web-2",
		},
		"a held one, and an HPA that came later": {
			facts{binding: aBinding(v1alpha1.PhaseHeld), managers: []*binding.ManagerError{hpa}},
			Contested, []string{"AutoScaler web has claimed it, and HorizontalPodAutoscaler/web targets it"}, "AutoScaler/web and HorizontalPodAutoscaler/web",
		},
		"an AutoScaler waits for an HPA to go": {
			facts{binding: claimed, autoscalers: []*v1alpha1.AutoScaler{waits}, managers: []*binding.ManagerError{hpa}},
			Managed, []string{"AutoScaler web stands by"}, "HorizontalPodAutoscaler/web",
		},
		"an AutoScaler waits for a ScaledObject and the HPA of it to go": {
			facts{binding: claimed, autoscalers: []*v1alpha1.AutoScaler{waits}, managers: []*binding.ManagerError{scaled, aManager("HorizontalPodAutoscaler", "keda-hpa-web", `ScaledObject "web"`)}},
			Managed, []string{"AutoScaler web stands by"}, "ScaledObject/web",
		},
		"an AutoScaler waits for two HPAs to go": {
			facts{binding: claimed, autoscalers: []*v1alpha1.AutoScaler{waits}, managers: []*binding.ManagerError{hpa, aManager("HorizontalPodAutoscaler", "web-2", "")}},
			Contested, []string{"AutoScaler web has claimed it, and HorizontalPodAutoscaler/web and HorizontalPodAutoscaler/web-2 target it"},
			"AutoScaler/web and HorizontalPodAutoscaler/web and HorizontalPodAutoscaler/web-2",
		},
		"an AutoScaler that does not wait has claimed it, beside an HPA": {
			facts{binding: claimed, autoscalers: []*v1alpha1.AutoScaler{anAutoScaler("web", "a", nil)}, managers: []*binding.ManagerError{hpa}},
			Contested, []string{"AutoScaler web has claimed it, and HorizontalPodAutoscaler/web targets it"}, "AutoScaler/web and HorizontalPodAutoscaler/web",
		},
		"one that was to wait has had the count, and an HPA came later": {
			facts{binding: aBinding(v1alpha1.PhaseContended), autoscalers: []*v1alpha1.AutoScaler{waits}, managers: []*binding.ManagerError{hpa}},
			Contested, []string{"AutoScaler web has claimed it, and HorizontalPodAutoscaler/web targets it"}, "AutoScaler/web and HorizontalPodAutoscaler/web",
		},
		"one waits, and what it waits for is not seen": {
			facts{binding: claimed, autoscalers: []*v1alpha1.AutoScaler{waits}}, Pending, []string{"AutoScaler web has claimed it: Contended"}, "AutoScaler/web",
		},
		"who holds it cannot be read": {
			facts{autoscalers: []*v1alpha1.AutoScaler{anAutoScaler("web", "a", nil)}, unread: true}, Unowned, []string{"whether AutoScaler web holds it cannot be read"}, "",
		},
		"another one is to wait": {
			facts{binding: aBinding(v1alpha1.PhaseHeld), autoscalers: []*v1alpha1.AutoScaler{anAutoScaler("next", "", func(a *v1alpha1.AutoScaler) { a.Spec.ClaimPolicy = v1alpha1.ClaimWait })}},
			Held, []string{"AutoScaler next stands by"}, "AutoScaler/web",
		},
		"somebody writes against the holder": {
			facts{binding: aBinding(v1alpha1.PhaseContended), autoscalers: []*v1alpha1.AutoScaler{contended}},
			Contested, []string{"argocd changed it from 4 to 1 against AutoScaler web, 2 in a row"}, "AutoScaler/web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.facts.deployment = aDeployment()

			e := judge(&tc.facts)

			assert.Equal(t, tc.want, e.State)
			assert.Equal(t, tc.why, e.Why)
			assert.Equal(t, tc.owner, e.Owner())
		})
	}
}

func TestTheLastForeignWrite(t *testing.T) {
	ours, apply, edit := wrote(controller.FieldManager, time.Minute), wrote("kubectl-client-side-apply", time.Hour), wrote("kubectl-edit", 2*time.Hour)
	labels := wrote("helm", time.Second)
	labels.FieldsV1 = fields(`{"f:metadata":{"f:labels":{}}}`)

	e := judge(&facts{deployment: aDeployment(edit, ours, apply, labels)})

	assert.Equal(t, []Writer{
		{controller.FieldManager, noon.Add(-time.Minute)}, {"kubectl-client-side-apply", noon.Add(-time.Hour)}, {"kubectl-edit", noon.Add(-2 * time.Hour)},
	}, e.Writers, "who does not own the count is left out")
	assert.Equal(t, &Writer{"kubectl-client-side-apply", noon.Add(-time.Hour)}, e.LastForeignWrite)

	undone := anAutoScaler("web", "a", func(a *v1alpha1.AutoScaler) {
		a.Status.Contention = &v1alpha1.Contention{Manager: "argocd", Time: metav1.NewTime(noon)}
	})
	e = judge(&facts{deployment: aDeployment(ours), autoscalers: []*v1alpha1.AutoScaler{undone}})
	assert.Equal(t, &Writer{"argocd", noon}, e.LastForeignWrite, "one that the operator has undone is in no managedFields")

	assert.Nil(t, judge(&facts{deployment: aDeployment(ours)}).LastForeignWrite)
}

func TestACountThatIsNotSetIsOne(t *testing.T) {
	assert.Equal(t, int32(1), judge(&facts{deployment: deploymentOf(&appsv1.Deployment{})}).Replicas)
}
