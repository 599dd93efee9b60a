package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

const (
	kindAutoScaler = "AutoScaler"
	kindProfile    = "MetricProfile"
	kindHPA        = "HorizontalPodAutoscaler"
)

// objects are those of files. What is not played is never decoded.
type objects struct {
	autoscalers, hpas []*manifest.Document
	profiles          map[string]*manifest.Document
}

func (o *options) readObjects(files []string) (objects, error) {
	ours, hpas := v1alpha1.GroupVersion.String(), autoscalingv2.SchemeGroupVersion.String()
	source := manifest.Source{In: o.streams.In, Keep: func(apiVersion, kind string) bool {
		return apiVersion == ours && (kind == kindAutoScaler || kind == kindProfile) || apiVersion == hpas && kind == kindHPA
	}}
	set := source.Read(files...)
	var errs []error
	for _, t := range set.Troubles {
		errs = append(errs, fmt.Errorf("%s: %s", t.Place, t.Message))
	}
	found := objects{profiles: map[string]*manifest.Document{}}
	for _, d := range set.Documents {
		switch d.Object.GetKind() {
		case kindAutoScaler:
			found.autoscalers = append(found.autoscalers, d)
		case kindProfile:
			found.profiles[d.Object.GetName()] = d
		default:
			found.hpas = append(found.hpas, d)
		}
	}
	return found, errors.Join(errs...)
}

func decodeAutoScaler(d *manifest.Document) (*v1alpha1.AutoScaler, error) {
	a := &v1alpha1.AutoScaler{TypeMeta: typeMeta(d)}
	return a, decode(d, &a.ObjectMeta, &a.Spec)
}

func decodeProfile(d *manifest.Document) (*v1alpha1.MetricProfile, error) {
	p := &v1alpha1.MetricProfile{TypeMeta: typeMeta(d)}
	return p, decode(d, &p.ObjectMeta, &p.Spec)
}

func decodeHPA(d *manifest.Document) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	h := &autoscalingv2.HorizontalPodAutoscaler{TypeMeta: typeMeta(d)}
	if path := manifest.ExtremeQuantity(d.Object.Object); path != "" {
		return nil, fmt.Errorf("%s: %s: is no quantity that means anything: its exponent is too large, or it has too many digits", d.Find(path), path)
	}
	if path := noQuantity(d.Object.Object["spec"], "spec"); path != "" {
		return nil, fmt.Errorf("%s: %s: is no quantity, as 100 or 500m", d.Find(path), path)
	}
	return h, decode(d, &h.ObjectMeta, &h.Spec)
}

// noQuantity is the path of the first text of an HPA that is to be a quantity and is none:
// the error of decoding it would name no field.
func noQuantity(value any, path string) string {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			if found := noQuantity(item, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := path + "." + key
			if text, ok := v[key].(string); ok && (key == "value" || key == "averageValue" || key == "tolerance") {
				if _, err := resource.ParseQuantity(text); err != nil {
					return below
				}
			}
			if found := noQuantity(v[key], below); found != "" {
				return found
			}
		}
	}
	return ""
}

func typeMeta(d *manifest.Document) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: d.Object.GetAPIVersion(), Kind: d.Object.GetKind()}
}

// decode reads an object strictly: a field that nobody knows would change nothing, where
// whoever wrote it believes that it does.
func decode(d *manifest.Document, meta *metav1.ObjectMeta, objectSpec any) error {
	if len(d.Repeated) > 0 {
		return fmt.Errorf("%s: %s stands there twice", d.Repeated[0].Place, d.Repeated[0].Field)
	}
	if _, err := part(d, "metadata", meta); err != nil {
		return err
	}
	if err := named(d, meta); err != nil {
		return err
	}
	unknown, err := part(d, "spec", objectSpec)
	if err != nil {
		return err
	}
	var errs []error
	for _, err := range unknown {
		path := err.Error()
		if _, quoted, ok := strings.Cut(path, `"`); ok {
			path = "spec." + strings.TrimSuffix(quoted, `"`)
		}
		errs = append(errs, fmt.Errorf("%s: unknown field %s", d.Find(path), path))
	}
	return errors.Join(errs...)
}

// part decodes a part of an object; unknown are the fields that its type has not.
func part(d *manifest.Document, name string, into any) (unknown []error, err error) {
	text, err := json.Marshal(d.Object.Object[name])
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(text, into)
	}
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		path := pathAt(name, text, mismatch.Offset)
		kind, number, _ := strings.Cut(mismatch.Value, " ") // as "number 2.5"
		return nil, fmt.Errorf("%s: %s: %s is expected, and not %s", d.Find(path), path, typeName(mismatch.Type), cmp.Or(number, kinds[kind]))
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", d.Find(name), name, err)
	}
	return unknown, nil
}

// named holds an object's names to what the API server says of them.
func named(d *manifest.Document, meta *metav1.ObjectMeta) error {
	const name, namespace = "metadata.name", "metadata.namespace"
	if faults := validation.IsDNS1123Subdomain(meta.Name); len(faults) > 0 {
		return fmt.Errorf("%s: %s: %q: %s", d.Find(name), name, meta.Name, faults[0])
	}
	if faults := validation.IsDNS1123Label(meta.Namespace); meta.Namespace != "" && len(faults) > 0 {
		return fmt.Errorf("%s: %s: %q: %s", d.Find(namespace), namespace, meta.Namespace, faults[0])
	}
	return nil
}

// kinds are what encoding/json calls the kinds of values.
var kinds = map[string]string{
	"number": "a number", "string": "text", "bool": "true or false", "array": "a list", "object": "a map of fields",
}

// typeName is what is to stand in a field of a type.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a map of fields"
	default:
		return "a whole number"
	}
}

// pathAt is the path of the value of a part's JSON that ends, or in which another begins,
// at an offset.
func pathAt(part string, text []byte, offset int64) string {
	dec := json.NewDecoder(bytes.NewReader(text))
	var find func(path string) (string, bool)
	find = func(path string) (string, bool) {
		token, err := dec.Token()
		if err != nil || dec.InputOffset() >= offset {
			return path, true
		}
		if token != json.Delim('{') && token != json.Delim('[') {
			return "", false
		}
		for i := 0; dec.More(); i++ {
			below := fmt.Sprintf("%s[%d]", path, i)
			if token == json.Delim('{') {
				key, _ := dec.Token() // a mistake comes again with the value
				below = fmt.Sprintf("%s.%v", path, key)
			}
			if found, ok := find(below); ok {
				return found, true
			}
		}
		_, _ = dec.Token() // the closing one
		return "", false
	}
	path, _ := find(part)
	return path
}
