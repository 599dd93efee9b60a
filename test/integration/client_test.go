//go:build integration

package integration

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// observed is the reconciler's client: it looks up by index without a cache, so
// that a test never waits for one, and lets a test count and disturb writes.
func (h *harness) observed() client.Client {
	return interceptor.NewClient(indexed(h.client.(client.WithWatch)), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*autoscalingv2.HorizontalPodAutoscalerList); ok && h.staleHPAs {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := h.fail("update", obj); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := h.fail("get", obj); err != nil {
				return err
			}
			err := c.Get(ctx, key, obj, opts...)
			if d, ok := obj.(*appsv1.Deployment); ok && h.staleReplicas != nil {
				d.Spec.Replicas, d.ResourceVersion = h.staleReplicas, "1"
			}
			return err
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if sub == "scale" {
				if h.beforeScale != nil {
					if err := h.beforeScale(); err != nil {
						return err
					}
				}
				h.scaleWrites.Add(1)
			}
			if err := h.fail("update "+sub, obj); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if h.beforeStatus != nil {
				if err := h.beforeStatus(); err != nil {
					return err
				}
			}
			h.statusWrites.Add(1)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}

func (h *harness) fail(verb string, obj client.Object) error {
	if h.failing == nil {
		return nil
	}
	return h.failing(verb, obj)
}

// promptSampler asks whenever it is read, as if the answers had just arrived: so a test
// needs no time to pass to see a load. It runs afterSample.
type promptSampler struct {
	h        *harness
	source   *prometheus.Client
	mu       sync.Mutex
	measures map[prometheus.Subscriber][]prometheus.Measure
}

var _ controller.Sampler = (*promptSampler)(nil)

func (s *promptSampler) Subscribe(id prometheus.Subscriber, _ time.Duration, measures []prometheus.Measure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measures[id] = measures
}

func (s *promptSampler) Unsubscribe(id prometheus.Subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.measures, id)
}

func (s *promptSampler) subscribed(id prometheus.Subscriber) []prometheus.Measure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.measures[id]
}

func (s *promptSampler) Samples(id prometheus.Subscriber, now time.Time) ([]scaling.Sample, []prometheus.Arrival, bool) {
	if s.h.unanswered {
		return nil, nil, false
	}
	measures := s.subscribed(id)
	samples := make([]scaling.Sample, len(measures))
	for i := range measures {
		samples[i] = s.source.Measure(s.h.ctx, measures[i])
	}
	if run := s.h.afterSample; run != nil {
		s.h.afterSample = nil
		run()
	}
	return samples, slices.Repeat([]prometheus.Arrival{{Newest: now, Used: now}}, len(samples)), true
}

// indexed answers look-ups by index from a live list.
func indexed(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			selector := o.FieldSelector
			o.FieldSelector = nil
			if err := c.List(ctx, list, &o); err != nil || selector == nil {
				return err
			}
			return keep(list, selector.Requirements())
		},
	})
}

func keep(list client.ObjectList, wants fields.Requirements) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var kept []runtime.Object
	for _, item := range items {
		for _, want := range wants {
			for _, value := range indexes[want.Field](item.(client.Object)) {
				if value == want.Value {
					kept = append(kept, item)
				}
			}
		}
	}
	return meta.SetList(list, kept)
}

// indexes are those that the operator registers.
var indexes = indexRecorder{}

type indexRecorder map[string]client.IndexerFunc

func (r indexRecorder) IndexField(_ context.Context, _ client.Object, name string, f client.IndexerFunc) error {
	r[name] = f
	return nil
}
