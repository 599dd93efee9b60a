package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/test/builders"
)

func TestWhatIsWrongWithAProfileIsLookedAtOncePerGeneration(t *testing.T) {
	var v verdicts
	p := builders.MakeMetricProfile("total").Obj()
	p.UID, p.Generation = "one", 1
	assert.Empty(t, v.of(p))

	p.Spec.Query = "sum("
	assert.Empty(t, v.of(p), "the same generation is the same query")
	p.Generation = 2
	assert.Contains(t, v.of(p), "spec.query")

	p.Spec.Query = builders.MakeMetricProfile("total").Obj().Spec.Query
	assert.NotEmpty(t, v.of(p))
	p.UID = "two"
	assert.Empty(t, v.of(p), "another profile of the name")
	v.forget("total")
	assert.Empty(t, v.byName)
}
