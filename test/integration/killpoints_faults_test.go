//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// fault is what goes wrong with one call of a process.
type fault string

const (
	// killed: the process ends right before the call. What it does between two calls,
	// and what it reads, leaves no trace outside it, so that this is also the death
	// anywhere since the last write.
	killed fault = "killed before"
	// refused: the API server is not reached.
	refused fault = "refused"
	// lost: the API server does what it is asked, and the answer never comes.
	lost fault = "answer lost"
	// conflicting: a write is answered as if somebody else had written meanwhile.
	conflicting fault = "conflict"
	// disturbed: something happens in the world right before the call.
	disturbed fault = "disturbed"
)

// call is one call from a process to what is outside it.
type call struct {
	name string
	kind callKind
}

type callKind int

const (
	local callKind = iota // within the process
	read
	write
)

// suffers says whether a fault can happen to a call.
func (c call) suffers(f fault) bool {
	switch f {
	case killed:
		return c.kind != read
	case refused:
		return c.kind != local
	}
	return c.kind == write
}

// errDead ends whatever a killed process was at.
var errDead = errors.New("this process was killed")

// faults sees every call of a process to the API server, to its sampler and to its
// event recorder, and has one of an evaluation go wrong.
type faults struct {
	mu    sync.Mutex // a list is read in pages by a goroutine of its own
	calls []call     // of this evaluation
	at    int        // the call that goes wrong; negative: none
	fault fault
	// dead: nothing that the process tries any more reaches anybody.
	dead bool
	// scaled is called with each count that is stored.
	scaled func()
	// disturb is what happens.
	disturb func()
}

// begin starts an evaluation in which a call goes wrong.
func (f *faults) begin(at int, what fault) { f.calls, f.at, f.fault = nil, at, what }

func (f *faults) do(c call, perform func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.calls)
	f.calls = append(f.calls, c)
	switch {
	case f.dead:
		return errDead
	case n != f.at:
		return perform()
	}
	switch f.fault {
	case killed:
		f.dead = true
		return errDead
	case disturbed:
		f.disturb()
		return perform()
	case refused:
		return apierrors.NewInternalError(errors.New("etcd is down"))
	case conflicting:
		return apierrors.NewConflict(schemaResource, c.name, errors.New("somebody else wrote it"))
	case lost:
		if err := perform(); err != nil {
			return err
		}
	}
	return apierrors.NewTimeoutError("the answer was lost", 0)
}

func named(verb string, obj any) string { return fmt.Sprintf("%s %T", verb, obj) }

// client is a process's only way to the API server.
func (f *faults) client(to client.WithWatch) client.WithWatch {
	return interceptor.NewClient(indexed(to), f.funcs())
}

// funcs has every verb go through do.
func (f *faults) funcs() interceptor.Funcs {
	funcs := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return f.do(call{named("get", obj), read}, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return f.do(call{named("list", list), read}, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return f.do(call{named("create", obj), write}, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return f.do(call{named("update", obj), write}, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return f.do(call{named("patch", obj), write}, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return f.do(call{named("apply", obj), write}, func() error { return c.Apply(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.do(call{named("delete", obj), write}, func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return f.do(call{named("delete all", obj), write}, func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
	}
	f.subresources(&funcs)
	return funcs
}

func (f *faults) subresources(funcs *interceptor.Funcs) {
	funcs.SubResourceGet = func(ctx context.Context, c client.Client, sub string, obj, into client.Object, opts ...client.SubResourceGetOption) error {
		return f.do(call{named("get "+sub, obj), read}, func() error { return c.SubResource(sub).Get(ctx, obj, into, opts...) })
	}
	funcs.SubResourceCreate = func(ctx context.Context, c client.Client, sub string, obj, from client.Object, opts ...client.SubResourceCreateOption) error {
		return f.do(call{named("create "+sub, obj), write}, func() error { return c.SubResource(sub).Create(ctx, obj, from, opts...) })
	}
	funcs.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
		return f.do(call{named("update "+sub, obj), write}, func() error {
			err := c.SubResource(sub).Update(ctx, obj, opts...)
			if err == nil && sub == "scale" {
				f.scaled()
			}
			return err
		})
	}
	funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		return f.do(call{named("patch "+sub, obj), write}, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
	}
	funcs.SubResourceApply = func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
		return f.do(call{named("apply "+sub, obj), write}, func() error { return c.SubResource(sub).Apply(ctx, obj, opts...) })
	}
}

// Eventf is a call of the process: an event that it dies before is never told.
func (f *faults) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	_ = f.do(call{"event " + reason, local}, func() error { return nil })
}

// loadSampler is a sampler to which the story's load arrives. It does not survive its
// process; what it has given is noted outside it.
type loadSampler struct {
	w      *world
	faults *faults
}

func (s *loadSampler) Subscribe(prometheus.Subscriber, time.Duration, []prometheus.Measure) {
	_ = s.faults.do(call{"subscribe", local}, func() error { return nil })
}

func (s *loadSampler) Unsubscribe(prometheus.Subscriber) {
	_ = s.faults.do(call{"unsubscribe", local}, func() error { return nil })
}

func (s *loadSampler) Samples(_ prometheus.Subscriber, now time.Time) (samples []scaling.Sample, at []prometheus.Arrival, ready bool) {
	_ = s.faults.do(call{"samples", local}, func() error {
		load := s.w.load()
		s.w.seen = append(s.w.seen, sighted{now, demand(load)})
		samples = []scaling.Sample{{Value: load, Validity: scaling.Valid}}
		return nil
	})
	return samples, []prometheus.Arrival{{Newest: now, Used: now}}, true
}
