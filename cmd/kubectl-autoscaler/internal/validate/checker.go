package validate

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/webhook"
)

// Kinds that something is done with.
const (
	autoScalerKind    = "AutoScaler"
	metricProfileKind = "MetricProfile"
	deploymentKind    = "Deployment"
	namespaceKind     = "Namespace"
)

// checker holds a set of objects to what admission would say of them.
type checker struct {
	kinds       kinds
	defaulter   *webhook.AutoScalerDefaulter
	autoscalers webhook.AutoScalerValidator
	profiles    webhook.MetricProfileValidator
	managers    *binding.GivenManagers
	world       *world
	// configured: the operator's configuration is known. Complete: what is not among
	// the given objects does not exist.
	configured, complete bool
	// namespace is that of objects that name none.
	namespace func() (string, error)
	// only is the namespace that was asked for; empty where none was.
	only  string
	began time.Time
	// generate makes a name that no other object has.
	generate func(namespace, prefix string) string

	// places of admitted AutoScalers and of profiles, of profiles that are refused, and of
	// other replica managers.
	places        map[types.NamespacedName]manifest.Place
	badProfiles   map[string]manifest.Place
	managerPlaces map[string]manifest.Place
	deployments   []*manifest.Document
}

// newChecker is for an operator with a configuration; nil stands for one that is not
// known: with the built-in limits and replica managers, and no rules.
func newChecker(c *config.Config, now clock.PassiveClock) (*checker, error) {
	configured := c != nil
	if !configured {
		c = &config.Config{}
		c.Limits.MaxReplicas = v1alpha1.DefaultLimits.MaxReplicas
	}
	all, err := loadKinds()
	if err != nil {
		return nil, err
	}
	managers, err := binding.NewGivenManagers(c.Managers.Registered())
	if err != nil {
		return nil, err
	}
	defaults, err := c.Defaults.Values()
	if err != nil {
		return nil, err
	}
	platform, err := c.Rules.Compile(defaults)
	if err != nil {
		return nil, err
	}
	w := newWorld()
	arbiter := &binding.Arbiter{
		Live: w, Clock: now, Grace: binding.DefaultGrace, Managers: managers,
		Usable: usable(c.Bounds()),
	}
	w.asks = arbiter.Asks
	return &checker{
		kinds: all, defaulter: &webhook.AutoScalerDefaulter{Defaults: defaults},
		autoscalers: webhook.AutoScalerValidator{
			Cached: w, Live: w, Arbiter: arbiter, Managers: managers,
			Limits: c.Bounds(), Defaults: defaults, Rules: platform,
		},
		profiles: webhook.MetricProfileValidator{Endpoints: c.EndpointNames(), Cached: w},
		managers: managers, world: w, configured: configured, began: now.Now(),
		places: map[types.NamespacedName]manifest.Place{}, badProfiles: map[string]manifest.Place{}, managerPlaces: map[string]manifest.Place{},
	}, nil
}

// usable remembers its answers: those who are first in line are asked about for all who come
// later.
func usable(limits v1alpha1.Limits) func(*v1alpha1.AutoScaler) bool {
	known := map[types.UID]bool{}
	return func(a *v1alpha1.AutoScaler) bool {
		answer, found := known[a.UID]
		if !found {
			answer = len(spec.ValidateAutoScaler(a, limits)) == 0
			known[a.UID] = answer
		}
		return answer
	}
}

// keep says which kinds have to do with it.
func (c *checker) keep(apiVersion, kind string) bool {
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	return gk.Group == v1alpha1.GroupVersion.Group || isDeployment(gk) || gk == schema.GroupKind{Kind: namespaceKind} || c.managers.IsManager(gk)
}

func isDeployment(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: appsv1.GroupName, Kind: deploymentKind}
}

// check gives the findings of all objects, object by object. Profiles come first: within
// one change they are applied before those who use them.
func (c *checker) check(ctx context.Context, documents []*manifest.Document) ([]*item, error) {
	var own []*manifest.Document
	named := map[types.NamespacedName]bool{}
	items := make([]*item, 0, len(documents))
	for _, d := range documents {
		gk := d.Object.GroupVersionKind().GroupKind()
		if err := c.locate(d.Object, gk); err != nil {
			return nil, err
		}
		if gk.Group == v1alpha1.GroupVersion.Group {
			own = append(own, d)
			named[types.NamespacedName{Namespace: d.Object.GetNamespace(), Name: d.Object.GetName()}] = true
			continue
		}
		items = append(items, c.surround(ctx, d, gk))
	}
	generated := 0
	c.generate = func(namespace, prefix string) string {
		for {
			generated++
			name := fmt.Sprintf("%s%05d", prefix, generated)
			if !named[types.NamespacedName{Namespace: namespace, Name: name}] {
				return name
			}
		}
	}
	for _, wanted := range []bool{true, false} {
		for _, d := range own {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if (d.Object.GetKind() == metricProfileKind) == wanted {
				items = append(items, c.checkOwn(ctx, d))
			}
		}
	}
	for _, i := range items {
		c.elsewhere(i)
	}
	for _, d := range c.deployments {
		items = append(items, c.replicasSet(d))
	}
	return items, nil
}

// locate gives an object the namespace that it does not name.
func (c *checker) locate(u *unstructured.Unstructured, gk schema.GroupKind) error {
	cluster := gk.Kind == namespaceKind || gk.Kind == metricProfileKind
	meta, ok := u.Object["metadata"].(map[string]any)
	if cluster || !ok || u.GetNamespace() != "" || meta["namespace"] != nil && meta["namespace"] != "" {
		return nil
	}
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	u.SetNamespace(namespace)
	return nil
}

// elsewhere refuses, as kubectl does, an object of another namespace than was asked for.
func (c *checker) elsewhere(i *item) {
	if its := i.Object.GetNamespace(); c.only != "" && its != "" && its != c.only && i.Object.GetKind() != metricProfileKind {
		i.say(LevelError, RuleSet, "metadata.namespace", fmt.Sprintf("the object is of namespace %q, and --namespace asks for %q; leave one of them out", its, c.only))
	}
}

func (c *checker) checkOwn(ctx context.Context, d *manifest.Document) *item {
	i := c.begin(ctx, d)
	switch {
	case d.Object.GetKind() == metricProfileKind && i.refused:
		c.badProfiles[d.Object.GetName()] = i.Place
	case i.refused:
	case i.Kind == metricProfileKind:
		c.admitProfile(ctx, i)
	case i.Kind == autoScalerKind:
		c.admit(ctx, i)
	default:
		i.say(LevelWarning, RuleSet, "kind", fmt.Sprintf("a %s is the operator's to write; where the guard is installed it refuses it from anybody else", i.Kind))
	}
	return i
}

// surround takes an object that is not the operator's own, and says what of it cannot be
// read.
func (c *checker) surround(ctx context.Context, d *manifest.Document, gk schema.GroupKind) *item {
	i := &item{Document: d, object: d.Object, name: title(d.Object)}
	unreadable := func(err error) {
		i.say(LevelWarning, RuleSet, "", "what this object says could not be read, and was left out of account: "+err.Error())
	}
	switch {
	case isDeployment(gk):
		deployment, err := deploymentOf(d.Object)
		if err != nil {
			unreadable(err)
			break
		}
		c.world.deployments[i.key()] = deployment
		c.deployments = append(c.deployments, d)
	case c.managers.IsManager(gk):
		if path := manifest.ExtremeQuantity(d.Object.Object); path != "" {
			message := "to read this number as a quantity would take for ever"
			if gk.Group != autoscalingv2.GroupName { // what of these is read, the configuration says
				i.say(LevelWarning, RuleSet, path, message+", so the object was left out of account")
				break
			}
			i.say(LevelWarning, RuleSet, path, message)
		}
		if _, err := c.managers.Add(ctx, d.Object); err != nil {
			unreadable(err)
		}
		c.managerPlaces[managerKey(gk.Kind, d.Object.GetNamespace(), d.Object.GetName())] = d.Place
	default:
		var namespace corev1.Namespace
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, &namespace); err != nil {
			unreadable(err)
			break
		}
		c.world.namespaces[namespace.Name] = &namespace
	}
	return i
}

// deploymentOf reads of a Deployment what is looked at. The rest may hold quantities that
// take for ever to read.
func deploymentOf(u *unstructured.Unstructured) (*appsv1.Deployment, error) {
	part := map[string]any{"metadata": u.Object["metadata"]}
	if whole, ok := u.Object["spec"].(map[string]any); ok {
		part["spec"] = map[string]any{"replicas": whole["replicas"]}
	}
	var deployment appsv1.Deployment
	return &deployment, runtime.DefaultUnstructuredConverter.FromUnstructured(part, &deployment)
}

func managerKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// replicasSet warns of a Deployment whose manifest has a count that an AutoScaler is to
// own: each apply asks for it again.
func (c *checker) replicasSet(d *manifest.Document) *item {
	i := &item{Document: d, object: d.Object, name: title(d.Object)}
	replicas, found, _ := unstructured.NestedFieldNoCopy(d.Object.Object, "spec", "replicas") // it was decoded before
	if !found || replicas == nil {
		return i
	}
	for _, a := range c.world.ofTarget[i.key()] {
		if !a.Spec.DryRun {
			place := c.places[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}]
			i.say(LevelWarning, RuleSet, "spec.replicas", fmt.Sprintf("AutoScaler %q is to own this count; leave it out of the manifest, or every apply asks for %v again", a.Name, replicas))
			i.findings[0].See = &place
			break
		}
	}
	return i
}
