//go:build perf

package perf

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/platform/autoscale-operator/test/controlplane"
)

// startControlPlane starts one to measure on, which says what it does, and stops it in
// the end.
func startControlPlane(t *testing.T, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	o.Progress = os.Stderr
	cp, err := controlplane.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	return cp
}

// writers is how many create at once what is there before a measurement.
const writers = 8

// createAll creates n objects, or groups of them.
func createAll(n int, create func(i int) error) error {
	var workers errgroup.Group
	workers.SetLimit(writers)
	for i := range n {
		workers.Go(func() error { return create(i) })
	}
	return workers.Wait()
}
