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
// with which a full window is waited. Entries past the policy's bounds are
// dropped.
func Memory(s *v1alpha1.DecisionMemory) scaling.Memory {
	if s == nil {
		return scaling.Memory{}
	}
	m := scaling.Memory{
		Target:   string(s.TargetUID),
		Observed: s.ObservedTime.UnixMicro(),
		Up:       step(s.StepUp),
		Down:     step(s.StepDown),
	}
	if s.LastScaleDownTime != nil {
		m.LastDown = s.LastScaleDownTime.UnixMicro()
	}
	for i := range min(len(s.Windows), len(m.Windows)) {
		from, to := &s.Windows[i], &m.Windows[i]
		key, err := strconv.ParseUint(from.Key, 16, 64)
		if err != nil {
			continue
		}
		to.Key, to.Since = key, from.Since.UnixMicro()
		for j := range min(len(from.Buckets), len(to.Buckets)) {
			to.Buckets[j] = scaling.Bucket{At: from.Buckets[j].Time.UnixMicro(), Max: from.Buckets[j].Replicas}
		}
	}
	return m
}

// MemoryStatus is the form in which a status holds the memory of n metrics.
func MemoryStatus(m *scaling.Memory, n int) *v1alpha1.DecisionMemory {
	s := &v1alpha1.DecisionMemory{
		TargetUID:    types.UID(m.Target),
		ObservedTime: micro(m.Observed),
		StepUp:       stepStatus(m.Up),
		StepDown:     stepStatus(m.Down),
	}
	if m.LastDown != 0 {
		at := micro(m.LastDown)
		s.LastScaleDownTime = &at
	}
	for _, w := range m.Windows[:n] {
		window := v1alpha1.WindowMemory{Key: strconv.FormatUint(w.Key, 16), Since: micro(w.Since)}
		for _, b := range w.Buckets {
			if b.At != 0 {
				window.Buckets = append(window.Buckets, v1alpha1.BucketMemory{Time: micro(b.At), Replicas: b.Max})
			}
		}
		s.Windows = append(s.Windows, window)
	}
	return s
}

func step(s *v1alpha1.StepMemory) scaling.Step {
	if s == nil {
		return scaling.Step{}
	}
	return scaling.Step{At: s.Time.UnixMicro(), Base: s.Base}
}

func stepStatus(s scaling.Step) *v1alpha1.StepMemory {
	if s.At == 0 {
		return nil
	}
	return &v1alpha1.StepMemory{Time: micro(s.At), Base: s.Base}
}

func micro(us int64) metav1.MicroTime { return metav1.NewMicroTime(time.UnixMicro(us).UTC()) }
