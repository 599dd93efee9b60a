package spec

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// Memory is the policy's memory as a status holds it; nil gives an empty memory,
// with which a full window is waited. Entries past the policy's bounds, and those that
// no memory could have left, are dropped.
func Memory(s *v1alpha1.DecisionMemory) scaling.Memory {
	if s == nil {
		return scaling.Memory{}
	}
	m := scaling.Memory{
		Target:          string(s.TargetUID),
		Observed:        micros(&s.ObservedTime),
		LastDown:        micros(s.LastScaleDownTime),
		AllInvalidSince: micros(s.AllInvalidSince),
		Up:              step(s.StepUp),
		Down:            step(s.StepDown),
	}
	ups := m.Ups[:0]
	for i := range s.RecentUps {
		up := scaling.Up{At: micros(&s.RecentUps[i].Time), Added: s.RecentUps[i].Replicas}
		if up.At > 0 && up.Added > 0 && len(ups) < len(m.Ups) {
			ups = append(ups, up)
		}
	}
	for i := range min(len(s.Windows), len(m.Windows)) {
		from, to := &s.Windows[i], &m.Windows[i]
		key, err := strconv.ParseUint(from.Key, 16, 64)
		if err != nil {
			continue
		}
		to.Key = key
		to.Down = history(&from.Since, from.Buckets)
		to.Up = history(from.UpSince, from.UpBuckets)
	}
	return m
}

func history(since *metav1.MicroTime, buckets []v1alpha1.BucketMemory) scaling.History {
	h := scaling.History{Since: micros(since)}
	n := 0
	for i := range buckets {
		at, replicas := micros(&buckets[i].Time), buckets[i].Replicas
		if at > 0 && replicas >= 0 && n < len(h.At) {
			h.At[n], h.Replicas[n] = at, replicas
			n++
		}
	}
	return h
}

// MemoryStatus is the form in which a status holds the memory of n metrics.
func MemoryStatus(m *scaling.Memory, n int) *v1alpha1.DecisionMemory {
	s := &v1alpha1.DecisionMemory{
		TargetUID:         types.UID(m.Target),
		ObservedTime:      micro(m.Observed),
		LastScaleDownTime: microIfEver(m.LastDown),
		StepUp:            stepStatus(m.Up),
		StepDown:          stepStatus(m.Down),
		AllInvalidSince:   microIfEver(m.AllInvalidSince),
	}
	for _, up := range m.Ups {
		if up.At != 0 {
			s.RecentUps = append(s.RecentUps, v1alpha1.UpMemory{Time: micro(up.At), Replicas: up.Added})
		}
	}
	for i := range m.Windows[:n] {
		w := &m.Windows[i]
		s.Windows = append(s.Windows, v1alpha1.WindowMemory{
			Key:       strconv.FormatUint(w.Key, 16),
			Since:     micro(w.Down.Since),
			Buckets:   bucketsStatus(&w.Down),
			UpSince:   microIfEver(w.Up.Since),
			UpBuckets: bucketsStatus(&w.Up),
		})
	}
	return s
}

func bucketsStatus(h *scaling.History) []v1alpha1.BucketMemory {
	var buckets []v1alpha1.BucketMemory
	for i, at := range h.At {
		if at != 0 {
			buckets = append(buckets, v1alpha1.BucketMemory{Time: micro(at), Replicas: h.Replicas[i]})
		}
	}
	return buckets
}

func step(s *v1alpha1.StepMemory) scaling.Step {
	if s == nil {
		return scaling.Step{}
	}
	return scaling.Step{At: micros(&s.Time), Base: s.Base}
}

func stepStatus(s scaling.Step) *v1alpha1.StepMemory {
	if s.At == 0 {
		return nil
	}
	return &v1alpha1.StepMemory{Time: micro(s.At), Base: s.Base}
}

// micros is a stored time as the memory has it: 0, which is "never", where there is
// none or it is before 1970.
func micros(t *metav1.MicroTime) int64 {
	if t == nil {
		return 0
	}
	return max(t.UnixMicro(), 0)
}

func micro(us int64) metav1.MicroTime { return metav1.NewMicroTime(time.UnixMicro(us).UTC()) }

func microIfEver(us int64) *metav1.MicroTime {
	if us == 0 {
		return nil
	}
	return new(micro(us))
}
