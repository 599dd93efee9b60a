package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/pager"

	"example.com/platform/autoscale-operator/expr"
)

// pageSize is the number of objects that one live list asks for.
const pageSize = 500

// isDeployment compares group and kind as they stand. An empty group and
// "extensions" are old names of apps for a Deployment, which other replica managers
// still resolve.
func isDeployment(group, kind string) bool {
	return kind == "Deployment" && (group == "apps" || group == "extensions" || group == "")
}

func groupOf(apiVersion string) (string, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return gv.Group, err
}

// deploymentsOf gives the names of the Deployments that an object scales, sorted. One
// that is being deleted scales none. Entries of the list that say nothing
// meaningful are left out, and told in the error beside the others.
func deploymentsOf(ctx context.Context, targets *expr.Program, obj *unstructured.Unstructured) ([]string, error) {
	if obj.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	value, err := targets.Eval(ctx, map[string]any{objectVariable: obj.Object})
	if err != nil {
		return nil, err
	}
	var names []string
	var bad error
	for i, entry := range value.([]any) {
		name, err := deploymentName(entry)
		switch {
		case err != nil && bad == nil:
			bad = fmt.Errorf("targets[%d]: %w", i, err)
		case err == nil && name != "":
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), bad
}

// deploymentName gives the name of the Deployment that a target is, or "" when it is
// something else.
func deploymentName(target any) (string, error) {
	fields, ok := target.(map[string]any)
	if !ok {
		return "", fmt.Errorf("it is a %T and must be a map", target)
	}
	text := map[string]string{}
	for _, key := range []string{"apiVersion", "group", "kind", "name"} {
		value, there := fields[key]
		if !there {
			continue
		}
		if text[key], ok = value.(string); !ok {
			return "", fmt.Errorf("its %s is a %T and must be a string", key, value)
		}
	}
	group, there := text["group"]
	if !there {
		var err error
		if group, err = groupOf(text["apiVersion"]); err != nil {
			return "", errors.New("its apiVersion must be group/version")
		}
	}
	name := text["name"]
	switch {
	case text["kind"] == "" || name == "":
		return "", errors.New("it must have a kind and a name")
	case !isDeployment(group, text["kind"]):
		return "", nil
	case len(name) > validation.DNS1123SubdomainMaxLength:
		return "", errors.New("its name is longer than any Deployment's can be")
	}
	return strings.Clone(name), nil // not a part of a large string
}

// errFound ends a list early.
var errFound = errors.New("found")

// eachItem lists in pages and shows each object to found, in the order of the API
// server, until that says true.
func eachItem(ctx context.Context, page pager.ListPageFunc, found func(runtime.Object) bool) error {
	p := pager.New(page)
	p.PageSize, p.PageBufferSize = pageSize, 0
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		if found(obj) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}
