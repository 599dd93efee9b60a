package binding

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// replicasPath is the field that everything here is about.
var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// OwnsReplicas says whether an entry of a Deployment's managedFields owns
// spec.replicas.
func OwnsReplicas(entry *metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil || !strings.Contains(entry.FieldsV1.GetRawString(), `"f:replicas"`) {
		return false // spares the parsing of most entries
	}
	var set fieldpath.Set
	err := set.FromJSON(entry.FieldsV1.GetRawReader())
	return err == nil && set.Has(replicasPath)
}

// ReplicaManagers names the field managers that own a Deployment's spec.replicas,
// each once, in alphabetical order. There are several where all applied the same
// count.
func ReplicaManagers(d *appsv1.Deployment) []string {
	var names []string
	for i := range d.ManagedFields {
		if OwnsReplicas(&d.ManagedFields[i]) {
			names = append(names, d.ManagedFields[i].Manager)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
