package replay

import (
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/hpa"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// rival is what the AutoScaler is compared with.
type rival struct {
	name       string
	autoscaler simulate.Autoscaler
}

// defaultHPA stands for an HPA without a file.
const defaultHPA = "hpa"

func (o *options) rivals(s *subject) ([]rival, error) {
	taken := map[string]bool{s.autoscaler.Name: true}
	var all []rival
	for _, with := range o.compare {
		r, err := o.rival(s, with)
		if err != nil {
			return nil, fmt.Errorf("--compare %s: %w", with, err)
		}
		for taken[r.name] {
			r.name += " (" + cli.Plain(with) + ")"
		}
		taken[r.name] = true
		all = append(all, r)
	}
	return all, nil
}

func (o *options) rival(s *subject, with string) (rival, error) {
	if with == defaultHPA {
		sameSpec, err := s.sameHPA()
		if err != nil {
			return rival{}, err
		}
		return kubernetes(s, defaultHPA, sameSpec)
	}
	given, err := o.readObjects([]string{with})
	switch {
	case err != nil:
		return rival{}, err
	case len(given.autoscalers)+len(given.hpas) != 1:
		return rival{}, fmt.Errorf("it has %d AutoScalers and %d HorizontalPodAutoscalers (autoscaling/v2); it must have one of them", len(given.autoscalers), len(given.hpas))
	case len(given.hpas) == 1:
		return s.hpa(given.hpas[0])
	}
	for name, p := range s.given.profiles {
		if _, own := given.profiles[name]; !own {
			given.profiles[name] = p
		}
	}
	a, profiles, err := s.platform.prepare(given.autoscalers[0], given.profiles)
	if err != nil {
		return rival{}, err
	}
	var names []string
	for i := range a.Spec.Metrics {
		names = append(names, a.Spec.Metrics[i].Name)
	}
	metrics, err := s.find(names)
	if err != nil {
		return rival{}, err
	}
	for i, metric := range metrics {
		if backlog := profiles[i] != nil && profiles[i].Spec.Semantics == v1alpha1.SemanticsBacklog; backlog && !s.backlog(metric) {
			return rival{}, fmt.Errorf("metric %q is a backlog there, and no arrivals are played", names[i])
		}
	}
	return rival{a.Name, simulate.NewPolicy(a, profiles, metrics)}, nil
}

// hpa is an HPA of a file, which the API server would take.
func (s *subject) hpa(from *manifest.Document) (rival, error) {
	h, err := decodeHPA(from)
	if err != nil {
		return rival{}, err
	}
	errs, target := hpa.Validate(&h.Spec), field.NewPath("spec", "scaleTargetRef")
	if h.Spec.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Required(target.Child("kind"), ""))
	}
	if h.Spec.ScaleTargetRef.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	if len(errs) > 0 {
		return rival{}, faults(from, errs)
	}
	return kubernetes(s, h.Name, &h.Spec)
}

// find gives the metrics of the recording by name; where both have one only, its name
// does not matter.
func (s *subject) find(names []string) ([]int, error) {
	own := s.autoscaler.Spec.Metrics
	if len(names) == 1 && len(own) == 1 {
		return []int{0}, nil
	}
	var known []string
	index := map[string]int{}
	for i := range own {
		index[own[i].Name] = i
		known = append(known, own[i].Name)
	}
	var metrics []int
	for _, name := range names {
		i, ok := index[name]
		if !ok {
			return nil, fmt.Errorf("nothing is recorded of its metric %q; there are %s", name, strings.Join(known, ", "))
		}
		metrics = append(metrics, i)
	}
	return metrics, nil
}

// sameHPA is an HPA with the bounds and targets of the AutoScaler, and without a behavior
// of its own.
func (s *subject) sameHPA() (*autoscalingv2.HorizontalPodAutoscalerSpec, error) {
	a := s.autoscaler
	var metrics []hpa.Metric
	for i := range a.Spec.Metrics {
		m := &a.Spec.Metrics[i]
		if s.backlog(i) {
			return nil, fmt.Errorf("an HPA has nothing like the backlog that metric %q is; give an HPA of yours as a file", m.Name)
		}
		target, err := resource.ParseQuantity(m.TargetPerReplica)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.Name, err)
		}
		metrics = append(metrics, hpa.Metric{Name: m.Name, Target: target})
	}
	return hpa.Spec(a.Spec.MinReplicas, a.Spec.MaxReplicas, metrics), nil
}

func kubernetes(s *subject, name string, given *autoscalingv2.HorizontalPodAutoscalerSpec) (rival, error) {
	algorithm, err := hpa.New(given)
	if err != nil {
		return rival{}, err
	}
	metrics := hpa.Metrics(given)
	names := make([]string, len(metrics))
	for i := range metrics {
		names[i] = metrics[i].Name
	}
	played, err := s.find(names)
	if err != nil {
		return rival{}, err
	}
	low := int32(1)
	if given.MinReplicas != nil {
		low = *given.MinReplicas
	}
	return rival{name, simulate.NewKubernetes(algorithm, low, given.MaxReplicas, played)}, nil
}
