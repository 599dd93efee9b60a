package node

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"example.com/platform/autoscale-operator/test/cluster/process"
)

//go:embed sandbox.sh
var setUp string

// sandbox is the set of namespaces that the node lives in: network, mounts and
// processes. Its first process ends with this one, or by Stop; with it the kernel
// ends all others, containers included, and takes mounts and network away.
type sandbox struct {
	dir   string
	first *process.Process
}

// newSandbox makes a sandbox whose /var/log is a folder of dir. Whatever else the
// programs in it write outside of dir stays in memory.
func newSandbox(ctx context.Context, dir, pause string) (*sandbox, error) {
	ready := filepath.Join(dir, "sandbox.ready")
	first, err := process.Start(ctx, process.Spec{
		Name: "sandbox", Dir: dir,
		Path:     "/bin/sh",
		Args:     []string{"-euc", setUp, "sandbox.sh", dir, pause, ready},
		Isolated: true,
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
		// There is nothing in it that would need to be asked to end.
		StopWithin: time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("the node's namespaces: %w", err)
	}
	return &sandbox{dir: dir, first: first}, nil
}

func (s *sandbox) pid() int { return s.first.PID() }

// command is how to run a command inside. It ends when the command that runs it
// does: nsenter remains outside and passes no signals on.
func (s *sandbox) command(args ...string) []string {
	return append([]string{
		"nsenter", "--target=" + strconv.Itoa(s.pid()), "--mount", "--net", "--pid", "--",
		"setpriv", "--pdeathsig=TERM", "--",
	}, args...)
}

// start starts a program inside.
func (s *sandbox) start(ctx context.Context, spec process.Spec) (*process.Process, error) {
	command := s.command(append([]string{spec.Path}, spec.Args...)...)
	spec.Path, spec.Args, spec.Dir = command[0], command[1:], s.dir
	return process.Start(ctx, spec)
}

// stop ends everything in the sandbox, and returns when it is gone.
func (s *sandbox) stop() error { return s.first.Stop() }
