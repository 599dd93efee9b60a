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
	r.mu.Lock()
	watch, failing := r.watch, r.failure != nil
	switch {
	case err != nil:
		r.tell(ctx, err, "whether registered replica managers exist cannot be told")
	case why != "":
		r.tell(ctx, nil, why)
	case !failing:
		r.trouble = ""
	}
	r.mu.Unlock()
	switch {
	case err != nil:
	case !found:
		r.goAbsent(watch)
	case watch != nil && failing:
		// The informer waits ever longer; a permission that was granted shall count soon.
		r.leave(watch, served)
		r.goServed(ctx)
	case watch == nil:
		r.goServed(ctx)
	}
}

func (r *registeredKind) goAbsent(watch *managerWatch) {
	if watch != nil {
		r.leave(watch, absent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.presence, r.failure = absent, nil
}

func (r *registeredKind) goServed(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.begin(ctx); err != nil {
		r.tell(ctx, err, "registered replica managers cannot be watched")
	}
}

// stop ends the watch and waits for its end.
func (r *registeredKind) stop() {
	r.mu.Lock()
	watch := r.watch
	r.presence, r.watch, r.failure = presenceUnknown, nil, nil
	r.mu.Unlock()
	if watch != nil {
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
