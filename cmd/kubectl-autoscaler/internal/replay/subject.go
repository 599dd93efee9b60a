package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/report"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// subject is the AutoScaler that is played.
type subject struct {
	autoscaler *v1alpha1.AutoScaler
	// profiles[i] is that of metric i, nil where none was given.
	profiles []*v1alpha1.MetricProfile
	objects  objects
	platform platform
}

// platform is what the operator's configuration says.
type platform struct {
	defaults v1alpha1.Defaults
	limits   v1alpha1.Limits
}

// objects are those of files.
type objects struct {
	autoscalers []placed[*v1alpha1.AutoScaler]
	hpas        []placed[*autoscalingv2.HorizontalPodAutoscaler]
	profiles    map[string]placed[*v1alpha1.MetricProfile]
}

// placed is an object with the document that it is from.
type placed[T any] struct {
	object T
	from   *manifest.Document
}

const (
	kindAutoScaler = "AutoScaler"
	kindProfile    = "MetricProfile"
	kindHPA        = "HorizontalPodAutoscaler"
)

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
	found := objects{profiles: map[string]placed[*v1alpha1.MetricProfile]{}}
	for _, d := range set.Documents {
		errs = append(errs, found.add(d))
	}
	return found, errors.Join(errs...)
}

func (o *objects) add(d *manifest.Document) error {
	if len(d.Repeated) > 0 {
		return fmt.Errorf("%s: %s stands there twice", d.Repeated[0].Place, d.Repeated[0].Field)
	}
	switch d.Object.GetKind() {
	case kindAutoScaler:
		a := &v1alpha1.AutoScaler{TypeMeta: typeMeta(d)}
		o.autoscalers = append(o.autoscalers, placed[*v1alpha1.AutoScaler]{a, d})
		return decode(d, &a.ObjectMeta, &a.Spec)
	case kindProfile:
		p := &v1alpha1.MetricProfile{TypeMeta: typeMeta(d)}
		o.profiles[d.Object.GetName()] = placed[*v1alpha1.MetricProfile]{p, d}
		return decode(d, &p.ObjectMeta, &p.Spec)
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{TypeMeta: typeMeta(d)}
	o.hpas = append(o.hpas, placed[*autoscalingv2.HorizontalPodAutoscaler]{h, d})
	return decode(d, &h.ObjectMeta, &h.Spec)
}

func typeMeta(d *manifest.Document) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: d.Object.GetAPIVersion(), Kind: d.Object.GetKind()}
}

// decode reads an object strictly: a field that nobody knows would change nothing, where
// whoever wrote it believes that it does.
func decode(d *manifest.Document, meta *metav1.ObjectMeta, objectSpec any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asMap(d.Object.Object["metadata"]), meta); err != nil {
		return fmt.Errorf("%s: metadata: %w", d.Find("metadata"), err)
	}
	text, err := json.Marshal(d.Object.Object["spec"])
	if err != nil {
		return fmt.Errorf("%s: spec: %w", d.Find("spec"), err)
	}
	unknown, err := kjson.UnmarshalStrict(text, objectSpec)
	if err != nil {
		return fmt.Errorf("%s: spec: %w", d.Find("spec"), err)
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

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// read finds the AutoScaler that is meant, with its profiles.
func (o *options) read() (*subject, error) {
	given, err := o.readObjects(o.files)
	if err != nil {
		return nil, err
	}
	where := "-f " + strings.Join(o.files, ",")
	s := &subject{objects: given, platform: platform{limits: v1alpha1.DefaultLimits}}
	if o.config != "" {
		c, err := config.Load(o.config)
		if err != nil {
			return nil, err
		}
		s.platform.limits = c.Bounds()
		if s.platform.defaults, err = c.Defaults.Values(); err != nil {
			return nil, fmt.Errorf("%s: %w", o.config, err)
		}
	}
	chosen, err := choose(given.autoscalers, o.name, where)
	if err != nil {
		return nil, err
	}
	if s.profiles, err = s.platform.prepare(chosen, given.profiles); err != nil {
		return nil, err
	}
	s.autoscaler = chosen.object
	for i, p := range s.profiles {
		if m := &s.autoscaler.Spec.Metrics[i]; p == nil {
			fmt.Fprintf(o.streams.Err, "warning: metric %s: MetricProfile %q is not in the files; its number is taken for the load of the whole service (Total)\n", m.Name, m.MetricProfileRef)
		}
	}
	return s, nil
}

func choose(all []placed[*v1alpha1.AutoScaler], name, where string) (placed[*v1alpha1.AutoScaler], error) {
	var names []string
	for _, a := range all {
		if name == "" && len(all) == 1 || name != "" && a.object.Name == name {
			return a, nil
		}
		names = append(names, a.object.Name)
	}
	switch {
	case len(all) == 0:
		return placed[*v1alpha1.AutoScaler]{}, fmt.Errorf("%s: has no AutoScaler (%s)", where, v1alpha1.GroupVersion)
	case name == "":
		return placed[*v1alpha1.AutoScaler]{}, fmt.Errorf("%s: has several AutoScalers; name one of %s", where, strings.Join(names, ", "))
	}
	return placed[*v1alpha1.AutoScaler]{}, fmt.Errorf("%s: has no AutoScaler %q; it has %s", where, name, strings.Join(names, ", "))
}

// prepare gives an AutoScaler its defaults, and holds it and its profiles to what the
// operator would say of them.
func (p *platform) prepare(a placed[*v1alpha1.AutoScaler], profiles map[string]placed[*v1alpha1.MetricProfile]) ([]*v1alpha1.MetricProfile, error) {
	v1alpha1.Default(a.object, p.defaults)
	if errs := spec.ValidateAutoScaler(a.object, p.limits); len(errs) > 0 {
		return nil, faults(a.from, errs)
	}
	used := make([]*v1alpha1.MetricProfile, len(a.object.Spec.Metrics))
	for i := range used {
		given, ok := profiles[a.object.Spec.Metrics[i].MetricProfileRef]
		if !ok {
			continue
		}
		used[i] = given.object
		if errs := spec.ValidateMetricProfile(used[i]); len(errs) > 0 {
			return nil, faults(given.from, errs)
		}
		if errs := spec.CheckParameters(a.object, i, used[i]); len(errs) > 0 {
			return nil, faults(a.from, errs)
		}
	}
	return used, nil
}

func faults(d *manifest.Document, errs field.ErrorList) error {
	all := make([]error, len(errs))
	for i, err := range errs {
		all[i] = fmt.Errorf("%s: %w", d.Find(err.Field), err)
	}
	return errors.Join(all...)
}

// about is what the report knows of it.
func (s *subject) about() *report.Subject {
	a := s.autoscaler
	about := &report.Subject{
		Title: fmt.Sprintf("Replay of AutoScaler %s", a.Name), Autoscalers: []string{a.Name}, Interval: spec.PollInterval(a),
	}
	for i := range a.Spec.Metrics {
		target, _ := v1alpha1.ParsePositiveDecimal(a.Spec.Metrics[i].TargetPerReplica) // it is valid
		m := report.Metric{Name: a.Spec.Metrics[i].Name, Target: target}
		if s.backlog(i) {
			m.Clearance = time.Duration(s.profiles[i].Spec.ClearanceSeconds) * time.Second
		}
		about.Metrics = append(about.Metrics, m)
	}
	return about
}

// warnOfBacklogs says what a replay of a queue cannot know.
func (s *subject) warnOfBacklogs(warn func(string)) {
	var names []string
	for i := range s.autoscaler.Spec.Metrics {
		if s.backlog(i) {
			names = append(names, s.autoscaler.Spec.Metrics[i].Name)
		}
	}
	if len(names) > 0 {
		warn(strings.Join(names, ", ") + ": the queue is played as long as it was that day, with the replicas of that day; " +
			"those of the simulation do not drain it, so that more of them do not make it shorter, nor fewer longer")
	}
}

// backlog says whether metric i has an arrival rate.
func (s *subject) backlog(i int) bool {
	return s.profiles[i] != nil && s.profiles[i].Spec.Semantics == v1alpha1.SemanticsBacklog
}
