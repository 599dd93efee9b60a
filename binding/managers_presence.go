package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// lookTimeout bounds one look at whether a kind is served.
const lookTimeout = 10 * time.Second

// Discovery tells which kinds are served.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	RESTClient() rest.Interface
}

// look sees whether the kind is served now, and starts or stops its watch. Where
// that cannot be told, everything stays as it is.
func (r *registeredKind) look(ctx context.Context, d Discovery) {
	asking, cancel := context.WithTimeout(ctx, lookTimeout)
	found, why, err := r.isServed(asking, d)
	cancel()
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tell(ctx, metav1.NamespaceAll, err, "whether registered replica managers exist cannot be told")
	case !found:
		r.goAbsent(ctx, why)
	default:
		r.goServed(ctx)
	}
}

// goAbsent ends all watches. why is what is wrong with the configuration, or empty.
func (r *registeredKind) goAbsent(ctx context.Context, why string) {
	for _, namespace := range r.namespaces {
		r.leave(r.watchOf(namespace), absent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.presence = absent
	clear(r.failures)
	if why == "" {
		clear(r.troubles)
		return
	}
	r.tell(ctx, metav1.NamespaceAll, nil, why)
}

// goServed begins the watches that are not there, and those again that fail: an
// informer waits ever longer, and a permission that was granted shall count soon.
func (r *registeredKind) goServed(ctx context.Context) {
	for _, namespace := range r.namespaces {
		watch, failing := r.stateOf(namespace)
		if watch != nil && !failing {
			continue
		}
		r.leave(watch, served)
		r.restart(ctx, namespace)
	}
}

// stateOf gives the watch of a namespace, and whether it fails; if it does not, what is
// logged next of it is news.
func (r *registeredKind) stateOf(namespace string) (watch *managerWatch, failing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failing = r.failures[namespace] != nil; !failing {
		delete(r.troubles, namespace)
	}
	if r.namespaces[0] != metav1.NamespaceAll {
		delete(r.troubles, metav1.NamespaceAll) // the kind itself is in order
	}
	return r.watches[namespace], failing
}

func (r *registeredKind) restart(ctx context.Context, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.begin(ctx, namespace); err != nil {
		r.tell(ctx, namespace, err, "registered replica managers cannot be watched")
	}
}

func (r *registeredKind) watchOf(namespace string) *managerWatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watches[namespace]
}

// stop ends the watches and waits for their end.
func (r *registeredKind) stop() {
	r.mu.Lock()
	watches := r.watches
	r.presence, r.watches = presenceUnknown, map[string]*managerWatch{}
	clear(r.failures)
	r.mu.Unlock()
	for _, watch := range watches {
		watch.stop()
		<-watch.done
	}
}

// isServed says whether the API server serves the kind in the configured version,
// and, where it serves something else by that name, what is wrong with the
// configuration.
func (r *registeredKind) isServed(ctx context.Context, d Discovery) (found bool, why string, err error) {
	groupVersion := r.config.Group + "/" + r.config.Version
	list, err := d.ServerResourcesForGroupVersionWithContext(ctx, groupVersion)
	switch {
	case apierrors.IsNotFound(err):
		why, err := r.otherVersions(ctx, d)
		return false, why, err
	case err != nil:
		return false, "", fmt.Errorf("asking for the resources of %s: %w", groupVersion, err)
	}
	i := slices.IndexFunc(list.APIResources, func(found metav1.APIResource) bool { return found.Name == r.config.Resource })
	switch {
	case i < 0:
		return false, "", nil
	case !list.APIResources[i].Namespaced:
		return false, "a registered replica manager is not namespaced and is not looked for: what it scales must be in its own namespace", nil
	}
	return true, "", nil
}

// otherVersions: a group that is served in other versions than the configured one
// holds managers that would never be seen.
func (r *registeredKind) otherVersions(ctx context.Context, d Discovery) (string, error) {
	var group metav1.APIGroup
	err := d.RESTClient().Get().AbsPath("/apis", r.config.Group).Do(ctx).Into(&group)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("asking for the versions of %s: %w", r.config.Group, err)
	}
	var versions []string
	for _, v := range group.Versions {
		versions = append(versions, v.Version)
	}
	return "a registered replica manager is served in other versions only (" + strings.Join(versions, ", ") + ") and is not looked for: set its version in the configuration's managers, and see whether its targets still fit", nil
}
