package simulate

import (
	"math"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/hpa"
)

// Kubernetes is an HPA as the controller of Kubernetes runs it.
type Kubernetes struct {
	hpa      *hpa.Autoscaler
	min, max int32
	// metrics[i] is the metric of the recording that the HPA's metric i follows.
	metrics []int
	usages  []hpa.Usage
}

// NewKubernetes is for an HPA with these bounds.
func NewKubernetes(a *hpa.Autoscaler, minReplicas, maxReplicas int32, metrics []int) *Kubernetes {
	return &Kubernetes{hpa: a, min: minReplicas, max: maxReplicas, metrics: metrics, usages: make([]hpa.Usage, len(metrics))}
}

// Interval is that in which the controller looks at an HPA.
func (k *Kubernetes) Interval() time.Duration { return hpa.SyncPeriod }

// Decide evaluates the HPA. A metric without a value, or with one that an adapter could
// not serve, is one that the controller does not get.
func (k *Kubernetes) Decide(at time.Time, current, _ int32, load []Load) (Verdict, error) {
	v := Verdict{Min: k.min, Max: k.max, Blind: true}
	for i, metric := range k.metrics {
		milli := math.Ceil(load[metric].Value * 1000) // as a quantity is rounded
		k.usages[i] = hpa.Usage{Known: !load[metric].Absent && milli >= 0 && milli < math.MaxInt64}
		if k.usages[i].Known {
			k.usages[i].Milli, v.Blind = int64(milli), false
			continue
		}
		if v.Invalid == nil {
			v.Invalid = make([]string, len(load))
		}
		v.Invalid[metric] = hpa.ReasonNoMetric
	}
	d := k.hpa.Decide(at, current, k.usages)
	v.Recommended, v.Desired, v.Replicas, v.Rule = d.Recommended, d.Desired, d.Replicas, d.Reason
	return v, nil
}
