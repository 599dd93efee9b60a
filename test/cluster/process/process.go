// Package process runs the programs that a cluster is made of: it starts one,
// waits until it answers, and makes sure that it does not outlive its starter.
//
// Three things end a program: Stop; on Linux the death of the starting process,
// however sudden (the kernel does it); and everywhere Reap, by the record that
// Start leaves in the program's directory.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// probeEvery is how often a program that is starting is asked whether it is ready.
	probeEvery = 50 * time.Millisecond
	// defaultReadyWithin bounds the start of a program that names no bound.
	defaultReadyWithin = 3 * time.Minute
	// defaultStopWithin is the time between SIGTERM and SIGKILL.
	defaultStopWithin = 10 * time.Second
	// logTail is how much of the log, in bytes, an error message quotes.
	logTail = 2000
)

// Spec describes one program to run.
type Spec struct {
	// Name is what messages, the log (<Name>.log) and the record (<Name>.pid)
	// call the program. It must be unique within Dir.
	Name string
	// Path is the executable, Args its arguments without the name.
	Path string
	Args []string
	// Env is added to the environment of the calling process.
	Env []string
	// Dir is an existing directory for the log and the record.
	Dir string
	// Isolated gives the program a network, mounts and process ids of its own, on
	// Linux and for root only. All that it starts, and all that enters its
	// namespaces, ends with it.
	Isolated bool
	// Ready is asked until it returns nil; a nil func means ready at once.
	Ready func(context.Context) error
	// ReadyWithin bounds the wait for Ready; 0 means 3 min.
	ReadyWithin time.Duration
	// StopWithin is how long Stop waits after SIGTERM before SIGKILL; 0 means 10 s.
	StopWithin time.Duration
}

// Process is a program that was started and became ready.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{}
	// err is what Wait returned; read it only after done is closed.
	err error

	stop sync.Once
}

// Start runs the program and waits until it is ready. On any error, including
// a canceled ctx, the program is gone when Start returns; the error quotes the
// end of its log.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	p, err := launch(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	if err := p.awaitReady(ctx); err != nil {
		stopErr := p.Stop()
		return nil, errors.Join(fmt.Errorf("%s: %w\n%s", spec.Name, err, p.quoteLog()), stopErr)
	}
	return p, nil
}

// launch starts the program and records it.
func launch(spec Spec) (*Process, error) {
	log, err := os.OpenFile(logPath(spec), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	cmd := exec.Command(spec.Path, spec.Args...) //nolint:noctx // the callers name the programs; Stop ends them in order, not a context
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr, err = childAttr(spec.Isolated); err != nil {
		return nil, err
	}
	if err := startOnLivingThread(cmd); err != nil {
		return nil, err
	}
	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	// A program that has ended already needs no record; awaitReady says why it ended.
	if err := writeRecord(spec.Dir, spec.Name, cmd.Process.Pid); err != nil && !errors.Is(err, errGone) {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Process) awaitReady(ctx context.Context) error {
	if p.spec.Ready == nil {
		return nil
	}
	within := p.spec.ReadyWithin
	if within == 0 {
		within = defaultReadyWithin
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not ready within %s", within))
	defer cancel()

	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var last error
	for {
		if last = p.spec.Ready(ctx); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("ended before it was ready: %w", p.exitError())
		case <-ctx.Done():
			return fmt.Errorf("%w; the last probe said: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

// Done is closed when the program has ended, whatever the reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how a program ended that was not asked to; it is nil while the
// program runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s: %w\n%s", p.spec.Name, p.exitError(), p.quoteLog())
	default:
		return nil
	}
}

// exitError is the reason of the program's end; an exit with status 0 is one too.
func (p *Process) exitError() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exited with status 0")
}

// Spec is what the program was started with.
func (p *Process) Spec() Spec { return p.spec }

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// LogPath is the file that receives the program's output.
func (p *Process) LogPath() string { return logPath(p.spec) }

// Stop ends the program with SIGTERM, after StopWithin with SIGKILL, and
// returns when it is gone. It may be called more than once; a program that has
// ended already is no error.
func (p *Process) Stop() error {
	var err error
	p.stop.Do(func() {
		within := p.spec.StopWithin
		if within == 0 {
			within = defaultStopWithin
		}
		err = p.signal(syscall.SIGTERM)
		timer := time.NewTimer(within)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
			err = errors.Join(err, p.signal(syscall.SIGKILL))
			<-p.done
		}
		err = errors.Join(err, removeRecord(p.spec.Dir, p.spec.Name))
	})
	<-p.done
	return err
}

// signal sends s; that the program has ended meanwhile is no error.
func (p *Process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	return nil
}

// quoteLog is the end of the log, indented, with the place of the rest.
func (p *Process) quoteLog() string {
	data, err := os.ReadFile(p.LogPath())
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
	}
	text := strings.TrimSpace(string(data))
	return fmt.Sprintf("  the end of %s:\n  | %s", p.LogPath(), strings.ReplaceAll(text, "\n", "\n  | "))
}

func logPath(spec Spec) string { return filepath.Join(spec.Dir, spec.Name+".log") }
