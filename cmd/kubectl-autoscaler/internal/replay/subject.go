package replay

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/report"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// subject is the AutoScaler that is played.
type subject struct {
	autoscaler *v1alpha1.AutoScaler
	// profiles[i] is that of metric i, nil where none was given.
	profiles []*v1alpha1.MetricProfile
	given    objects
	platform platform
}

// platform is what the operator's configuration says.
type platform struct {
	defaults v1alpha1.Defaults
	limits   v1alpha1.Limits
}

// read finds the AutoScaler that is meant, with its profiles.
func (o *options) read() (*subject, error) {
	given, err := o.readObjects(o.files)
	if err != nil {
		return nil, err
	}
	where := "-f " + strings.Join(o.files, ",")
	s := &subject{given: given, platform: platform{limits: v1alpha1.DefaultLimits}}
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
	if s.autoscaler, s.profiles, err = s.platform.prepare(chosen, given.profiles); err != nil {
		return nil, err
	}
	for i, p := range s.profiles {
		if m := &s.autoscaler.Spec.Metrics[i]; p == nil {
			fmt.Fprintf(o.streams.Err, "warning: metric %s: MetricProfile %q is not in the files; its number is taken for the load of the whole service (Total)\n", m.Name, m.MetricProfileRef)
		}
	}
	return s, nil
}

func choose(all []*manifest.Document, name, where string) (*manifest.Document, error) {
	var names []string
	for _, d := range all {
		if name == "" && len(all) == 1 || name != "" && d.Object.GetName() == name {
			return d, nil
		}
		names = append(names, cli.Plain(d.Object.GetName()))
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s: has no AutoScaler (%s)", where, v1alpha1.GroupVersion)
	case name == "":
		return nil, fmt.Errorf("%s: has several AutoScalers; name one of %s", where, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%s: has no AutoScaler %q; it has %s", where, name, strings.Join(names, ", "))
}

// prepare decodes an AutoScaler with its profiles, gives it its defaults, and holds all of
// them to what the operator would say of them.
func (p *platform) prepare(from *manifest.Document, profiles map[string]*manifest.Document) (*v1alpha1.AutoScaler, []*v1alpha1.MetricProfile, error) {
	a, err := decodeAutoScaler(from)
	if err != nil {
		return nil, nil, err
	}
	v1alpha1.Default(a, p.defaults)
	if errs := spec.ValidateAutoScaler(a, p.limits); len(errs) > 0 {
		return nil, nil, faults(from, errs)
	}
	used := make([]*v1alpha1.MetricProfile, len(a.Spec.Metrics))
	for i := range used {
		given, ok := profiles[a.Spec.Metrics[i].MetricProfileRef]
		if !ok {
			continue
		}
		if used[i], err = decodeProfile(given); err != nil {
			return nil, nil, err
		}
		if errs := spec.ValidateMetricProfile(used[i]); len(errs) > 0 {
			return nil, nil, faults(given, errs)
		}
		if errs := spec.CheckParameters(a, i, used[i]); len(errs) > 0 {
			return nil, nil, faults(from, errs)
		}
	}
	return a, used, nil
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
