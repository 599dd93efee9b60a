package binding

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// givenManager is a replica manager of a Deployment.
func givenManager(apiVersion, kind, name, target string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "a", "name": name},
		"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
	}}
}

func TestGivenManagersAnswerAsThoseOfACluster(t *testing.T) {
	g, err := NewGivenManagers(DefaultManagers())
	require.NoError(t, err)
	for _, obj := range []*unstructured.Unstructured{
		givenManager("autoscaling/v1", HPAKind, "second", "web"), givenManager("autoscaling/v2", HPAKind, "first", "web"),
		givenManager("autoscaling/v2", HPAKind, "made-by-keda", "queue"), givenManager("keda.sh/v1alpha1", "ScaledObject", "queue", "queue"),
	} {
		targets, err := g.Add(t.Context(), obj)
		require.NoError(t, err)
		assert.Len(t, targets, 1)
	}

	var manager *ManagerError
	require.ErrorAs(t, g.Find(t.Context(), "a", "web"), &manager)
	assert.Equal(t, "first", manager.Name, "the one of the least name")
	require.ErrorAs(t, g.FindLive(t.Context(), "a", "queue"), &manager)
	assert.Equal(t, "ScaledObject", manager.Kind, "not what it makes")
	assert.NoError(t, g.Find(t.Context(), "b", "web"), "another namespace")
	assert.NoError(t, g.Find(t.Context(), "a", "other"))
}

func TestAGivenManagerThatCannotBeReadSaysSo(t *testing.T) {
	g, err := NewGivenManagers(DefaultManagers())
	require.NoError(t, err)
	for _, obj := range []*unstructured.Unstructured{
		givenManager("autoscaling/v2", HPAKind, "a", "web"), givenManager("keda.sh/v1alpha1", "ScaledObject", "a", "web"),
	} {
		obj.Object["spec"] = map[string]any{"scaleTargetRef": "web"}
		_, err := g.Add(t.Context(), obj)
		require.Error(t, err, obj.GetKind())
	}
	assert.NoError(t, g.Find(t.Context(), "a", "web"))

	targets, err := g.Add(t.Context(), givenManager("v1", "Service", "a", "web"))
	require.NoError(t, err)
	assert.Empty(t, targets, "a kind that is none")
	assert.False(t, g.IsManager(schema.GroupKind{Kind: "Service"}))
	assert.True(t, g.IsManager(schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}))
}

func TestGivenManagersOfABadConfigurationAreRefused(t *testing.T) {
	_, err := NewGivenManagers([]ManagerConfig{{Kind: "x"}})
	assert.ErrorContains(t, err, "managers[0].kind")
}
