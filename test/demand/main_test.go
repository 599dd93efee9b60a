//go:build integration

// Package demand asks a real Prometheus what the operator would ask it, while targets
// are lost, rules fail, data is gone and counters begin anew: what the fixtures of
// other tests only imitate. Nothing here may ever look like a load that went away.
package demand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

var (
	// shared is the Prometheus of all tests that do not have to stop theirs.
	shared *prometheusServer
	// program is the executable, ports are the loopback ports of this process.
	program string
	ports   *cluster.Ports
)

func TestMain(m *testing.M) {
	code, err := run(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demand tests:", err)
		code = 1
	}
	os.Exit(code)
}

// run gives back what it took, which os.Exit would not.
func run(ctx context.Context, m *testing.M) (_ int, err error) {
	set, err := binaries.Build(ctx, os.Stderr, binaries.Prometheus)
	if err != nil {
		return 0, err
	}
	program = set.Path(binaries.Prometheus)
	cache, err := binaries.CacheDir()
	if err != nil {
		return 0, err
	}
	ports = cluster.NewPorts(filepath.Join(cache, "ports"))
	defer func() { err = errors.Join(err, ports.Release()) }()
	dir, err := os.MkdirTemp("", "autoscale-demand-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if shared, err = newPrometheus(dir); err != nil {
		return 0, err
	}
	if err := shared.start(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.stop()) }()
	// They wait more than they work. A -parallel of the command line wins.
	if err := flag.Set("test.parallel", "16"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

const (
	// patience is long enough for anything that is going to come.
	patience = 30 * time.Second
	// pollEvery is how often what may come is looked for.
	pollEvery = 100 * time.Millisecond
)
