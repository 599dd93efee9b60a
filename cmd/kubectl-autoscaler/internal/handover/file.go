package handover

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

// readFile reads the object that is to be handed over: the one of that kind and name, or,
// where no name is given, the only one that can be.
func (o *options) readFile(kind, name string) (*unstructured.Unstructured, error) {
	source := manifest.Source{In: o.streams.In, Keep: func(string, string) bool { return true }}
	set := source.Read(o.file)
	if len(set.Troubles) > 0 {
		return nil, fmt.Errorf("%s: %s", set.Troubles[0].Place, set.Troubles[0].Message)
	}
	var found []*manifest.Document
	var can, all []string
	for _, d := range set.Documents {
		u := d.Object
		all = append(all, fmt.Sprintf("%s %q", u.GetKind(), u.GetName()))
		if kinds[u.GetKind()] != u.GroupVersionKind() {
			continue
		}
		if err := identified(u); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", d.Place, u.GetKind(), err)
		}
		can = append(can, prefix(u.GetKind())+u.GetName())
		if name == "" || kind == u.GetKind() && name == u.GetName() {
			found = append(found, d)
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s: it holds nothing", o.file)
	case len(can) == 0:
		return nil, fmt.Errorf("%s: it holds %s; an autoscaling/v2 HorizontalPodAutoscaler or a keda.sh/v1alpha1 ScaledObject can be handed over", o.file, strings.Join(all, ", "))
	case len(found) == 0:
		return nil, fmt.Errorf("%s: it holds no %s %q, but %s", o.file, kind, name, strings.Join(can, ", "))
	case len(found) > 1 && name == "":
		return nil, fmt.Errorf("%s: it holds %s: say which one, as in kubectl autoscaler handover -f %[1]s %[3]s", o.file, strings.Join(can, ", "), can[0])
	case len(found) > 1:
		return nil, fmt.Errorf("%s: it holds %s %q more than once: leave one of them", o.file, kind, name)
	case len(found[0].Repeated) > 0:
		twice := found[0].Repeated[0]
		return nil, fmt.Errorf("%s: the key %s stands there twice", twice.Place, twice.Key)
	}
	return found[0].Object, o.withNamespace(found[0].Object)
}

// identified says what is wrong with the name of an object, or its namespace, which end in
// commands that are copied: YAML takes some for no text, and a file may hold anything.
func identified(u *unstructured.Unstructured) error {
	if err := hasName(u, "name", validation.NameIsDNSSubdomain); err != nil {
		return err
	}
	if namespace, _, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", "namespace"); err == nil && (namespace == nil || namespace == "") {
		return nil
	}
	return hasName(u, "namespace", validation.ValidateNamespaceName)
}

func hasName(u *unstructured.Unstructured, field string, valid validation.ValidateNameFunc) error {
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", field)
	if err != nil {
		return err
	}
	text, isText := value.(string)
	switch {
	case value == nil:
		return fmt.Errorf("metadata.%s is missing", field)
	case !isText:
		return fmt.Errorf("metadata.%s is %v, which is no text: put it in quotation marks", field, value)
	}
	if complaints := valid(text, false); len(complaints) > 0 {
		return fmt.Errorf("metadata.%s %q: %s", field, text, strings.Join(complaints, "; "))
	}
	return nil
}

// withNamespace gives an object that names none the namespace that kubectl would.
func (o *options) withNamespace(u *unstructured.Unstructured) error {
	if u.GetNamespace() != "" {
		return nil
	}
	namespace, err := o.kube.Namespace()
	if err == nil {
		u.SetNamespace(namespace)
	}
	return err
}
