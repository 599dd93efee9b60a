package certs

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	// now is when the tests begin.
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	names = []string{"operator-webhook.system.svc", "127.0.0.1"}
)

// issued gives a CA with a certificate that it signed.
func issued(t *testing.T, at time.Time) material {
	t.Helper()
	m, _, err := material{}.next(at, names, false)
	require.NoError(t, err)
	return m
}

// reissued gives another certificate of the same CA.
func (m material) reissued(t *testing.T, at time.Time) material {
	t.Helper()
	require.NoError(t, m.issue(at, names))
	return m
}

func (m material) pair() Pair { return Pair{Cert: m.certPEM, Key: m.keyPEM, CA: m.bundle()} }

// source gives what the test says.
type source struct {
	mu   sync.Mutex
	pair Pair
	err  error
}

func (s *source) Load(context.Context) (Pair, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair, s.err
}

func (s *source) give(pair Pair, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pair, s.err = pair, err
}

// served is a Serving of this source, after its first look.
func served(t *testing.T, from Source) (*Serving, *clocktesting.FakeClock) {
	t.Helper()
	clk := clocktesting.NewFakeClock(now)
	s := NewServing(from, clk)
	s.Refresh(t.Context())
	return s, clk
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}
