package validate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/kube"
)

// fieldManager is that of the dry run: what it would set nobody keeps.
const fieldManager = "kubectl-autoscaler-validate"

// warnings of the API server, until they are taken.
type warnings struct{ said []string }

// HandleWarningHeader keeps one.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 { // what a warning of the API server is marked with
		w.said = append(w.said, text)
	}
}

// server asks a cluster.
type server struct {
	client   client.Client
	warnings *warnings
}

// ask adds the cluster's answer to each of the operator's own objects.
func (o *options) ask(ctx context.Context, c *checker, items []*item) error {
	config, err := o.kube.RESTConfig()
	if err != nil {
		return err
	}
	s := &server{warnings: &warnings{}}
	config.WarningHandler = s.warnings
	scheme, err := kube.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("reach the cluster at %s: %w", config.Host, err)
	}
	for _, i := range items {
		if i.Document.Object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		if err := s.dryRun(ctx, c, i); err != nil {
			return fmt.Errorf("%s: %s: ask the cluster at %s: %w", i.Place, i.name, config.Host, err)
		}
	}
	return nil
}

// dryRun applies an object as it is written, and stores nothing. The error is of a cluster
// that does not answer.
func (s *server) dryRun(ctx context.Context, c *checker, i *item) error {
	u := i.Object.DeepCopy()
	s.warnings.said = nil
	var err error
	if u.GetName() == "" {
		err = s.client.Create(ctx, u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	} else {
		u.SetManagedFields(nil)
		err = s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.ForceOwnership, client.FieldOwner(fieldManager))
	}
	switch {
	case err != nil && !answered(err):
		return err
	case apierrors.IsForbidden(err):
		if err := s.mayAsk(ctx, u); err != nil {
			return err
		}
	}
	// The cluster knows what the files do not tell.
	i.findings = slices.DeleteFunc(i.findings, func(f Finding) bool { return f.Level == LevelNote })
	said := len(i.findings)
	i.refuse(RuleServer, err)
	i.warn(RuleServer, s.warnings.said)
	i.merge(said)
	c.applyFirst(i)
	return nil
}

// mayAsk tells a refusal of the object from one of the person who asks: the error names the
// right that is missing.
func (s *server) mayAsk(ctx context.Context, u *unstructured.Unstructured) error {
	mapping, err := s.client.RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	verbs := []string{"patch", "create"} // an apply of what is not there yet needs both
	if u.GetName() == "" {
		verbs = []string{"create"}
	}
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: u.GetNamespace(), Name: u.GetName(), Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource,
			},
		}}
		if err := s.client.Create(ctx, review); err != nil {
			return fmt.Errorf("ask what you may do there: %w", err)
		}
		if !review.Status.Allowed {
			return fmt.Errorf("you may not %s %s there; a dry run needs the rights of the apply, which --as and --context choose", verb, mapping.Resource.GroupResource())
		}
	}
	return nil
}

// answered says whether an error is the cluster's answer to the object, and not a failure
// to get one.
func answered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusUnauthorized && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

// merge leaves out what the cluster says that was found before.
func (i *item) merge(said int) {
	before := slices.Clone(i.findings[:said])
	i.findings = slices.DeleteFunc(i.findings, func(f Finding) bool {
		return f.Rule == RuleServer && slices.ContainsFunc(before, func(b Finding) bool { return b.Field == f.Field && b.Message == f.Message })
	})
}

// applyFirst makes a note of what the cluster misses and the files have.
func (c *checker) applyFirst(i *item) {
	for n := range i.findings {
		f := &i.findings[n]
		_, name, _ := strings.Cut(f.Message, `"`)
		name, rest, _ := strings.Cut(name, `"`)
		if f.Rule != RuleServer || c.world.profiles[name] == nil || !strings.Contains(rest, "there is no such MetricProfile") {
			continue
		}
		f.Level, f.Message = LevelNote, fmt.Sprintf("the cluster has no MetricProfile %q yet; it is among the given files, and is to be applied first", name)
	}
}
