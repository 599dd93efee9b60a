package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

// item is one of the operator's own objects on its way through admission.
type item struct {
	*manifest.Document
	*kind
	// object is the document's, as far as it has come.
	object *unstructured.Unstructured
	name   string // for findings
	// findings so far, and whether one of them refuses it.
	findings []Finding
	refused  bool
}

func (i *item) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.object.GetNamespace(), Name: i.object.GetName()}
}

func (i *item) say(level Level, rule Rule, path, message string) {
	place := i.Place
	if len(i.findings) < maxPerObject { // of those beyond only the number is told
		place = i.Find(path)
	}
	i.findings = append(i.findings, Finding{
		Level: level, Rule: rule, Place: place, Object: i.name, Field: path, Message: message,
	})
	i.refused = i.refused || level == LevelError
}

// title is kind and name of an object as it is written.
func title(u *unstructured.Unstructured) string {
	name := u.GetName()
	if name == "" {
		name = u.GetGenerateName() + "…"
	}
	if namespace := u.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return u.GetKind() + " " + name
}

// begin takes an object through what the API server does before it asks the webhooks. It
// ends where the API server's answer would.
func (c *checker) begin(ctx context.Context, d *manifest.Document) *item {
	i := &item{Document: d, object: d.Object.DeepCopy(), name: title(d.Object)}
	gvk := d.Object.GroupVersionKind()
	if i.kind = c.kinds[gvk]; i.kind == nil {
		i.say(LevelError, RuleFields, "kind", fmt.Sprintf("there is no %s in %s; this version has %s", gvk.Kind, gvk.GroupVersion(), c.kinds))
		return i
	}
	for _, r := range d.Repeated {
		i.say(LevelError, RuleFields, r.Field, fmt.Sprintf("key %q already set in map", r.Key))
		i.findings[len(i.findings)-1].Place = r.Place
	}
	unknown, err := i.decode(i.object)
	if err != nil {
		i.say(LevelError, RuleFields, "metadata", err.Error())
	}
	for _, path := range unknown {
		i.say(LevelError, RuleFields, path, fmt.Sprintf("unknown field %q", path))
	}
	if i.refused {
		return i
	}
	if n := values(i.object.Object["spec"]); n > maxValues {
		i.say(LevelError, RuleSchema, "spec", fmt.Sprintf("it has %d fields and items; an object that the API takes has far fewer than %d, so they were not looked at", n, maxValues))
		return i
	}
	if c.defaulted(ctx, i) {
		i.create(i.object)
		if prefix := i.object.GetGenerateName(); i.object.GetName() == "" && prefix != "" {
			i.object.SetName(c.generate(i.object.GetNamespace(), prefix))
		}
		i.refuse(RuleSchema, invalid(i, i.validate(ctx, i.object)))
	}
	return i
}

// maxValues bounds what is held to the schema: its validation compares every error with
// every other. The largest valid object has half of that.
const maxValues = 3000

// values counts fields and items.
func values(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			n += values(child)
		}
	case []any:
		for _, child := range v {
			n += values(child)
		}
	}
	return n
}

// String lists kinds.
func (k kinds) String() string {
	names := map[string]bool{}
	for gvk := range k {
		names[gvk.Kind] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ") + " in " + v1alpha1.GroupVersion.String()
}

// defaulted runs the mutating webhook.
func (c *checker) defaulted(ctx context.Context, i *item) bool {
	if i.Kind != autoScalerKind {
		return true
	}
	text, err := json.Marshal(i.object.Object)
	if err == nil {
		err = patched(c.defaulter.Handle(ctx, request(text)), text, i.object)
	}
	if err != nil {
		i.say(LevelError, RuleAdmission, "", err.Error())
		return false
	}
	i.complete(i.object)
	return true
}

// invalid is the answer of the API server to an object with errors.
func invalid(i *item, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(i.GroupKind(), i.object.GetName(), errs)
}

// refuse adds an answer's causes, or the answer where it has none.
func (i *item) refuse(rule Rule, err error) {
	for _, f := range causes(err) {
		if strings.Contains(f.Message, errUnchecked.Error()) {
			i.say(LevelNote, rule, "", errUnchecked.Error())
			continue
		}
		i.say(LevelError, rule, f.Field, f.Message)
	}
}

// causes of an answer, each with field and message alone.
func causes(err error) []Finding {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	var all []Finding
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			path := cause.Field
			if path == "<nil>" {
				path = ""
			}
			all = append(all, Finding{Field: path, Message: cause.Message})
		}
	}
	if len(all) == 0 {
		all = []Finding{{Message: err.Error()}}
	}
	var parted []Finding
	for _, f := range all {
		parted = append(parted, fields(f)...)
	}
	return parted
}

const strictDecoding = "strict decoding error: "

var strictly = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]*)"`)

// fields parts what the API server says of all unknown fields in one text, in a patch's
// case behind the whole object.
func fields(f Finding) []Finding {
	if rest, whole := strings.CutPrefix(f.Message, "Invalid value: "); whole && f.Field == "patch" {
		if value, err := strconv.QuotedPrefix(rest); err == nil {
			f = Finding{Message: strings.TrimPrefix(rest[len(value):], ": ")}
		}
	}
	var all []Finding
	if at := strings.LastIndex(f.Message, strictDecoding); at >= 0 {
		for _, m := range strictly.FindAllStringSubmatch(f.Message[at:], -1) {
			all = append(all, Finding{Field: m[1], Message: m[0]})
		}
	}
	if len(all) == 0 {
		return []Finding{f}
	}
	return all
}
