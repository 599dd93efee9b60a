package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Right after the first write the cache still shows the AutoScaler without a status. A
// foreign change in that moment must be seen for what it is.
func TestAStatusThatIsNotSeenYetForgetsNoCount(t *testing.T) {
	for name, test := range map[string]struct {
		target types.UID
		kept   bool
	}{
		"the Deployment of the record": {"uid", true},
		"another one":                  {"new", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &evaluation{autoscaler: &v1alpha1.AutoScaler{}}
			e.target.uid, e.target.replicas = test.target, 3
			e.record.baseline = &count{target: "uid", replicas: 4}
			e.observeTarget()
			assert.Equal(t, test.kept, e.record.baseline != nil)
		})
	}
}
