package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// ask adds the cluster's answer to each of the operator's own objects. The error tells of
// those that could not be asked.
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
	var failed []error
	var away error
	for _, i := range items {
		if i.kind == nil { // what is not the operator's, or not of this version, which is told
			continue
		}
		err := away
		if err == nil {
			err = s.dryRun(ctx, c, i)
		}
		if err == nil {
			continue
		}
		i.say(LevelNote, RuleServer, "", "the cluster could not be asked: "+err.Error())
		failed = append(failed, fmt.Errorf("%s: %s: ask the cluster at %s: %w", i.Place, i.name, config.Host, err))
		if unreachable := new(url.Error); errors.As(err, &unreachable) {
			away = err
		}
	}
	if len(failed) > 1 {
		return fmt.Errorf("%w (and %s more could not be asked; the report has a note for each)", failed[0], counted(len(failed)-1, "object"))
	}
	return errors.Join(failed...)
}

// dryRun applies an object as kubectl does, and stores nothing. The error is of a cluster
// that does not answer.
func (s *server) dryRun(ctx context.Context, c *checker, i *item) error {
	u := i.Object.DeepCopy()
	if len(content.IsPathSegmentName(u.GetName())) > 0 {
		return nil // there is no address to ask for it, and its name is refused already
	}
	s.warnings.said = nil
	verbs, err := s.apply(ctx, u)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("it does not serve %s; is the operator installed there? %w", u.GroupVersionKind().GroupVersion(), err)
	case err != nil && !answered(err):
		return err
	case apierrors.IsForbidden(err):
		if err := s.mayAsk(ctx, u, verbs); err != nil {
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

// apply sends what kubectl apply would, and gives the verbs that it needed.
func (s *server) apply(ctx context.Context, u *unstructured.Unstructured) (verbs []string, err error) {
	if u.GetName() == "" {
		return []string{"create"}, s.create(ctx, u)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(u.GroupVersionKind())
	switch err := s.client.Get(ctx, client.ObjectKeyFromObject(u), stored); {
	case apierrors.IsNotFound(err):
		return []string{"get", "create"}, s.create(ctx, u)
	case err != nil:
		return []string{"get"}, err
	}
	patch, err := applyPatch(stored, u)
	if err != nil {
		return nil, err
	}
	return []string{"get", "patch"}, s.client.Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch), client.DryRunAll,
		client.FieldOwner(fieldManager), client.FieldValidation(metav1.FieldValidationStrict))
}

func (s *server) create(ctx context.Context, u *unstructured.Unstructured) error {
	return s.client.Create(ctx, u, client.DryRunAll, client.FieldOwner(fieldManager), client.FieldValidation(metav1.FieldValidationStrict))
}

// applyPatch is kubectl's patch: what the manifest has, without what it had when it was
// last applied. Where that is not known it had the whole spec.
func applyPatch(stored, wanted *unstructured.Unstructured) ([]byte, error) {
	before := []byte(stored.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	if len(before) == 0 {
		var err error
		if before, err = json.Marshal(map[string]any{"spec": stored.Object["spec"]}); err != nil {
			return nil, err
		}
	}
	after, err := json.Marshal(wanted.Object)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(stored.Object)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, current)
}

// mayAsk tells a refusal of the object from one of the person who asks: the error names the
// right that is missing.
func (s *server) mayAsk(ctx context.Context, u *unstructured.Unstructured, verbs []string) error {
	mapping, err := s.client.RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		return err
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
