package binding

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultPresenceInterval is the time between two looks at whether the kinds of
// the registered replica managers are served.
const DefaultPresenceInterval = 10 * time.Second

// ManagerError says that another replica manager targets the Deployment.
type ManagerError struct {
	Namespace, Target string
	// Kind, Resource and Name tell which object it is; kubectl knows Resource.
	Kind, Resource, Name string
	// MadeBy is the kind and name of the object that made it and would make it
	// again, or empty.
	MadeBy string
}

// Error names the manager and the way out.
func (e *ManagerError) Error() string {
	if e.MadeBy != "" {
		return fmt.Sprintf("%s %q, made by %s, already scales Deployment %q; delete %s first, or set dryRun to compare beside it", e.Kind, e.Name, e.MadeBy, e.Target, e.MadeBy)
	}
	return fmt.Sprintf("%s %q already scales Deployment %q; delete it first (kubectl -n %s delete %s %s), or set dryRun to compare beside it", e.Kind, e.Name, e.Target, e.Namespace, e.Resource, e.Name)
}

// Managers knows the other replica managers of the cluster: HorizontalPodAutoscalers
// and the registered kinds. A registered kind need not exist; it is noticed when it
// appears, and forgotten when it goes. Start keeps the caches that Find looks into;
// without it every look is live.
type Managers struct {
	// kinds in the order in which they are looked at: the registered ones first, for
	// some of them make HorizontalPodAutoscalers and are what is to be deleted.
	kinds      []managerKind
	registered []*registeredKind
	discovery  Discovery
	clock      clock.WithTicker
	interval   time.Duration

	mu        sync.RWMutex
	listeners []func(namespace, target string)
}

// managerKind is one kind of replica managers.
type managerKind interface {
	// find gives the manager of a Deployment with the least name, or nil.
	find(ctx context.Context, namespace, target string) (*ManagerError, error)
	// eachLive lists the managers of a namespace, or of all, with each of their
	// Deployments, in the order of the API server, until found says true.
	eachLive(ctx context.Context, namespace string, found func(*ManagerError) bool) error
	// resource is what messages call the kind.
	resource() string
}

// ManagersOptions are what Managers need.
type ManagersOptions struct {
	// Cached reads HorizontalPodAutoscalers by the index HPATarget; Live reads them
	// from the API server.
	Cached, Live client.Reader
	// Dynamic reads the registered kinds, and Discovery tells which are served.
	Dynamic   dynamic.Interface
	Discovery Discovery
	// Registered kinds; see DefaultManagers.
	Registered []ManagerConfig
	// Namespaces that are watched, each once; none stands for all.
	Namespaces []string
	Clock      clock.WithTicker
	// Interval between two looks at which kinds are served; 0 is
	// DefaultPresenceInterval.
	Interval time.Duration
}

// NewManagers compiles the registered kinds. The error tells all that is wrong with
// them, each by index and field.
func NewManagers(o ManagersOptions) (*Managers, error) {
	programs, err := compileManagers(o.Registered)
	if err != nil {
		return nil, err
	}
	m := &Managers{discovery: o.Discovery, clock: o.Clock, interval: o.Interval}
	if m.interval == 0 {
		m.interval = DefaultPresenceInterval
	}
	for i, config := range o.Registered {
		r := newRegisteredKind(config, programs[i], o.Dynamic, o.Namespaces, m.changed)
		m.registered = append(m.registered, r)
		m.kinds = append(m.kinds, r)
	}
	m.kinds = append(m.kinds, &hpas{cached: o.Cached, live: o.Live})
	return m, nil
}

// Find looks into the caches, by index. It gives a *ManagerError when another
// replica manager targets the Deployment, and nil when none does; one that is being
// deleted is no conflict. A kind that is served and whose cache is not filled yet
// is listed live. A kind that the operator's account may not watch is an error.
func (m *Managers) Find(ctx context.Context, namespace, target string) error {
	return m.first(func(k managerKind) (*ManagerError, error) { return k.find(ctx, namespace, target) })
}

// FindLive is Find by live lists of the namespace, never from a cache.
func (m *Managers) FindLive(ctx context.Context, namespace, target string) error {
	return m.first(func(k managerKind) (*ManagerError, error) { return findLive(ctx, k, namespace, target) })
}

// first gives the first conflict. A kind that could not be looked at matters only
// where no other conflicts.
func (m *Managers) first(look func(managerKind) (*ManagerError, error)) error {
	var errs []error
	for _, kind := range m.kinds {
		conflict, err := look(kind)
		switch {
		case err != nil:
			errs = append(errs, err)
		case conflict != nil:
			return conflict
		}
	}
	return errors.Join(errs...)
}

// OnChange calls f with each Deployment that a registered manager has begun or
// ceased to target since. f must not block. HorizontalPodAutoscalers, which
// controllers watch by themselves, are not told of.
func (m *Managers) OnChange(f func(namespace, target string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners = append(m.listeners, f)
}

func (m *Managers) changed(namespace string, targets []string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, f := range m.listeners {
		for _, target := range targets {
			f(namespace, target)
		}
	}
}

// Start keeps the caches of the registered kinds that are served, until the context
// ends.
func (m *Managers) Start(ctx context.Context) error {
	ticker := m.clock.NewTicker(m.interval)
	defer ticker.Stop()
	for {
		for _, r := range m.registered {
			r.look(ctx, m.discovery)
		}
		select {
		case <-ctx.Done():
			for _, r := range m.registered {
				r.stop()
			}
			return nil
		case <-ticker.C():
		}
	}
}

// NeedLeaderElection says that it runs on every replica: admission asks Find.
func (m *Managers) NeedLeaderElection() bool { return false }
