package binding

import (
	"cmp"
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/expr"
)

// GivenManagers are replica managers that are handed over one by one, where there is no
// cluster to ask. They answer as [Managers] do.
type GivenManagers struct {
	registered []ManagerConfig
	programs   []*expr.Program
	// managers by the Deployment that they scale: of several, the one to tell.
	managers map[types.NamespacedName]given
}

type given struct {
	rank     int // of the kind, as in Managers
	conflict *ManagerError
}

// NewGivenManagers compiles the registered kinds. The error tells all that is wrong with
// them, each by index and field.
func NewGivenManagers(registered []ManagerConfig) (*GivenManagers, error) {
	programs, err := compileManagers(registered)
	if err != nil {
		return nil, err
	}
	return &GivenManagers{registered: registered, programs: programs, managers: map[types.NamespacedName]given{}}, nil
}

// IsManager says whether a kind is one of replica managers, in whatever version.
func (g *GivenManagers) IsManager(kind schema.GroupKind) bool {
	_, found := g.rank(kind)
	return found
}

// rank of a kind in the order in which Managers look at them.
func (g *GivenManagers) rank(kind schema.GroupKind) (int, bool) {
	for i := range g.registered {
		if kind.Group == g.registered[i].Group && kind.Kind == g.registered[i].Kind {
			return i, true
		}
	}
	return len(g.registered), kind == schema.GroupKind{Group: autoscalingv2.GroupName, Kind: HPAKind}
}

// Add takes a replica manager and gives the Deployments that it scales. The error tells
// what of that cannot be told, beside those that can.
func (g *GivenManagers) Add(ctx context.Context, obj *unstructured.Unstructured) ([]string, error) {
	rank, found := g.rank(obj.GroupVersionKind().GroupKind())
	switch {
	case !found:
		return nil, nil
	case rank < len(g.registered):
		names, err := deploymentsOf(ctx, g.programs[rank], obj)
		r := &registeredKind{config: g.registered[rank]}
		for _, name := range names {
			g.add(rank, r.conflict(obj.GetNamespace(), name, obj.GetName()))
		}
		return names, err
	}
	// What is looked at is the same in all versions of the kind.
	var hpa autoscalingv2.HorizontalPodAutoscaler
	part := map[string]any{"metadata": obj.Object["metadata"]}
	if spec, ok := obj.Object["spec"].(map[string]any); ok {
		part["spec"] = map[string]any{"scaleTargetRef": spec["scaleTargetRef"]}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(part, &hpa); err != nil {
		return nil, err
	}
	names := IndexHPA(&hpa)
	for _, name := range names {
		g.add(rank, hpaConflict(&hpa, name))
	}
	return names, nil
}

func (g *GivenManagers) add(rank int, conflict *ManagerError) {
	key := types.NamespacedName{Namespace: conflict.Namespace, Name: conflict.Target}
	known, found := g.managers[key]
	if !found || cmp.Or(cmp.Compare(rank, known.rank), cmp.Compare(conflict.Name, known.conflict.Name)) < 0 {
		g.managers[key] = given{rank, conflict}
	}
}

// Find gives a *ManagerError when one of them scales the Deployment.
func (g *GivenManagers) Find(_ context.Context, namespace, target string) error {
	if m, found := g.managers[types.NamespacedName{Namespace: namespace, Name: target}]; found {
		return m.conflict
	}
	return nil
}

// FindLive is Find.
func (g *GivenManagers) FindLive(ctx context.Context, namespace, target string) error {
	return g.Find(ctx, namespace, target)
}
