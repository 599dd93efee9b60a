package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// request is a creation that stores nothing, by nobody in particular.
func request(object []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, DryRun: new(true), Object: runtime.RawExtension{Raw: object},
	}}
}

// patched applies what a mutating webhook answers.
func patched(answer admission.Response, text []byte, to *unstructured.Unstructured) error {
	if !answer.Allowed {
		return errors.New(answer.Result.Message)
	}
	if len(answer.Patches) == 0 {
		return nil
	}
	encoded, err := json.Marshal(answer.Patches)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return err
	}
	if text, err = patch.Apply(text); err != nil {
		return err
	}
	return to.UnmarshalJSON(text)
}

// typed decodes an object as the operator does.
func typed(u *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// admitProfile asks the webhook for MetricProfiles. Without the operator's configuration
// every endpoint may be one.
func (c *checker) admitProfile(ctx context.Context, i *item) {
	var p v1alpha1.MetricProfile
	if err := typed(i.object, &p); err != nil {
		i.say(LevelError, RuleAdmission, "", err.Error())
		return
	}
	c.replace(i)
	c.places[i.key()] = i.Place
	v := c.profiles
	if !c.configured {
		v.Endpoints = []string{p.Spec.Endpoint}
		i.say(LevelNote, RuleAdmission, "spec.endpoint", fmt.Sprintf("whether there is an endpoint %q is in the operator's configuration; --config reads it", p.Spec.Endpoint))
	}
	warnings, err := v.ValidateCreate(ctx, &p)
	i.refuse(RuleAdmission, err)
	i.warn(RuleAdmission, warnings)
	if i.refused {
		c.badProfiles[p.Name] = i.Place
		return
	}
	c.world.profiles[p.Name] = &p
}

// admit asks the webhook for AutoScalers, in a world where those before are stored.
func (c *checker) admit(ctx context.Context, i *item) {
	var a v1alpha1.AutoScaler
	if err := typed(i.object, &a); err != nil {
		i.say(LevelError, RuleAdmission, "", err.Error())
		return
	}
	c.replace(i)
	c.world.identify(&a)
	forget := c.standIns(i, &a)
	defer forget()
	v := c.autoscalers
	if c.lacksNamespace(i, &a) {
		v.Rules = nil
	}
	warnings, err := v.ValidateCreate(admission.NewContextWithRequest(ctx, request(nil)), &a)
	i.refuse(RuleAdmission, err)
	i.warn(RuleAdmission, warnings)
	c.showHolder(ctx, i, &a)
	if a.DecodeError != "" {
		return
	}
	c.world.store(&a, i.refused, c.began)
	c.places[i.key()] = i.Place
	free := c.managers.Find(ctx, a.Namespace, a.Spec.TargetRef.Name) == nil && c.world.bindings[targetOf(&a)] == nil
	if free && !a.Spec.DryRun {
		c.world.hold(&a)
	}
}

// replace takes away an object of the same name: kubectl apply would write one over
// the other.
func (c *checker) replace(i *item) {
	if before, found := c.places[i.key()]; found {
		i.say(LevelWarning, RuleSet, "metadata.name", "an object of this name is among the given files already; whichever is applied last counts")
		i.findings[len(i.findings)-1].See = &before
		c.world.forget(i.key())
	}
}

// standIns puts, in the place of what only a cluster can tell of, a profile that allows
// everything and a Deployment that asks for nothing, and says so. The returned function
// takes them away.
func (c *checker) standIns(i *item, a *v1alpha1.AutoScaler) (forget func()) {
	added := map[string]*v1alpha1.MetricProfile{}
	for n := range a.Spec.Metrics {
		m := &a.Spec.Metrics[n]
		if added[m.MetricProfileRef] == nil && c.world.profiles[m.MetricProfileRef] != nil {
			continue
		}
		if !c.unknownProfile(i, n, m.MetricProfileRef) {
			continue
		}
		p := added[m.MetricProfileRef]
		if p == nil {
			p = &v1alpha1.MetricProfile{Spec: v1alpha1.MetricProfileSpec{AllowedNamespaces: []v1alpha1.NamespaceName{v1alpha1.AllNamespaces}}}
			added[m.MetricProfileRef], c.world.profiles[m.MetricProfileRef] = p, p
		}
		for name := range m.Parameters {
			p.Spec.Parameters = append(p.Spec.Parameters, v1alpha1.ProfileParameter{Name: name, Pattern: "(?s).*", Default: "any"})
		}
	}
	target, missing := targetOf(a), false
	if missing = !c.complete && c.world.deployments[target] == nil; missing {
		i.say(LevelNote, RuleSet, "spec.targetRef.name", fmt.Sprintf("Deployment %q is not among the given files", target.Name))
		c.world.deployments[target] = &appsv1.Deployment{}
	}
	return func() {
		for name := range added {
			delete(c.world.profiles, name)
		}
		if missing {
			delete(c.world.deployments, target)
		}
	}
}

// unknownProfile says whether nothing is to be said of a profile that the world lacks,
// and why.
func (c *checker) unknownProfile(i *item, metric int, name string) bool {
	path := fmt.Sprintf("spec.metrics[%d].metricProfileRef", metric)
	bad, found := c.badProfiles[name]
	switch {
	case found:
		i.say(LevelNote, RuleSet, path, fmt.Sprintf("MetricProfile %q would be refused itself, so whether it allows this was not checked", name))
		i.findings[len(i.findings)-1].See = &bad
	case c.complete:
		return false
	default:
		i.say(LevelNote, RuleSet, path, fmt.Sprintf("MetricProfile %q is not among the given files, so whether it exists and allows this was not checked; --server asks a cluster", name))
	}
	return true
}

// lacksNamespace says whether rules of the platform cannot be evaluated for want of a
// Namespace.
func (c *checker) lacksNamespace(i *item, a *v1alpha1.AutoScaler) bool {
	if c.autoscalers.Rules.Uses(rules.VariableRequest) {
		i.say(LevelNote, RuleAdmission, "", "rules of the platform look at the request; here it is a creation, as a dry run, by nobody")
	}
	if !c.autoscalers.Rules.Uses(rules.VariableNamespace) || c.world.namespaces[a.Namespace] != nil {
		return false
	}
	i.say(LevelNote, RuleSet, "metadata.namespace", fmt.Sprintf("rules of the platform look at Namespace %q, which is not among the given files; the rules were not evaluated", a.Namespace))
	return true
}

// warn adds warnings, which begin with their field.
func (i *item) warn(rule Rule, warnings []string) {
	for _, w := range warnings {
		path, message, found := strings.Cut(w, ": ")
		if !found || strings.ContainsAny(path, " \"") {
			path, message = "", w
		}
		i.say(LevelWarning, rule, path, message)
	}
}

// showHolder adds the place of who has the Deployment already.
func (c *checker) showHolder(ctx context.Context, i *item, a *v1alpha1.AutoScaler) {
	see, found := manifest.Place{}, false
	var manager *binding.ManagerError
	if errors.As(c.managers.Find(ctx, a.Namespace, a.Spec.TargetRef.Name), &manager) {
		see, found = c.managerPlaces[managerKey(manager.Kind, manager.Namespace, manager.Name)]
	} else if b := c.world.bindings[targetOf(a)]; b != nil {
		see, found = c.places[types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.OwnerRef.Name}]
	}
	if !found {
		return
	}
	for n := range i.findings {
		f := &i.findings[n]
		about := f.Field == "spec.targetRef.name" && f.Level == LevelError || f.Field == "spec.claimPolicy" || f.Field == "spec.dryRun"
		if about && f.Rule == RuleAdmission {
			f.See = &see
		}
	}
}
