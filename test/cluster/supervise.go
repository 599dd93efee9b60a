package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/platform/autoscale-operator/test/cluster/filelock"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// A cluster in the background is held by a supervisor, a process in a session
// of its own. Whether one runs is told by the lock in the cluster's directory,
// which cannot outlive it.

const (
	// readyName is a file that says that all components are ready.
	readyName = "ready"
	// endedName is a file that says why the last supervisor gave up.
	endedName = "ended"
)

const (
	// answerWithin is how long Up waits for a cluster that somebody else has started.
	answerWithin = 2 * time.Minute
	// stopWithin is how long Down waits for a supervisor before it kills it.
	stopWithin = 30 * time.Second
	// askEvery is how often both look.
	askEvery = 100 * time.Millisecond
)

// errStarterGone ends a supervisor whose starter went before the cluster was ready.
var errStarterGone = errors.New("whoever started the cluster is gone")

// message is what a supervisor tells its starter, one JSON object each.
type message struct {
	Progress string `json:"progress,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	Error    string `json:"error,omitempty"`
	InUse    bool   `json:"inUse,omitempty"`
}

// reporter sends what is written to it as progress.
type reporter struct{ to *json.Encoder }

func (r reporter) Write(data []byte) (int, error) {
	return len(data), r.to.Encode(message{Progress: string(data)})
}

// Up makes sure that a cluster runs in dir and answers. It reports whether one
// did before. Otherwise it starts supervisor, which must call Supervise with
// files 3 and 4; when ctx ends before the cluster is ready, nothing remains.
func Up(ctx context.Context, dir string, out io.Writer, supervisor func() *exec.Cmd) (already bool, err error) {
	for {
		if held(dir) {
			err := awaitAnswer(ctx, dir)
			if err == nil {
				return true, nil
			}
			if held(dir) || ctx.Err() != nil {
				return false, err
			}
			continue // It ended while we waited.
		}
		if reason, err := os.ReadFile(filepath.Join(dir, endedName)); err == nil {
			fmt.Fprintf(out, "The last cluster here ended by itself: %s\n", reason)
		}
		if err := spawn(ctx, supervisor(), out); !errors.Is(err, ErrInUse) {
			return false, err
		}
		// Another Up was faster.
	}
}

// held reports whether a live process has dir.
func held(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		return false
	}
	lock, err := filelock.Try(filepath.Join(dir, lockName), "a look")
	if err != nil {
		return errors.Is(err, filelock.ErrHeld)
	}
	return lock.Release() != nil
}

// spawn starts a supervisor and stays until its cluster is ready or it has ended.
func spawn(ctx context.Context, supervisor *exec.Cmd, out io.Writer) error {
	control, keep, err := os.Pipe()
	if err != nil {
		return err
	}
	defer keep.Close()
	reports, report, err := os.Pipe()
	if err != nil {
		return errors.Join(err, control.Close())
	}
	defer reports.Close()
	supervisor.ExtraFiles = []*os.File{control, report}
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = supervisor.Start()
	if err = errors.Join(err, control.Close(), report.Close()); err != nil {
		return err
	}

	// Closing keep without a word is what makes the supervisor give up.
	unhook := context.AfterFunc(ctx, func() { _ = keep.Close() })
	defer unhook()
	result := errors.New("the supervisor of the cluster ended without a word")
	for decoder := json.NewDecoder(reports); ; {
		var m message
		if err := decoder.Decode(&m); err != nil {
			break
		}
		switch {
		case m.Ready:
			if _, err := keep.Write([]byte{1}); err == nil {
				return supervisor.Process.Release()
			}
		case m.InUse:
			result = ErrInUse
		case m.Error != "":
			result = errors.New(m.Error)
		default:
			fmt.Fprint(out, m.Progress)
		}
	}
	_ = supervisor.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return result
}

// awaitAnswer waits until the cluster in dir is ready and answers.
func awaitAnswer(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin,
		fmt.Errorf("the cluster in %s runs but does not answer; stop it (make cluster-down), then start it again", dir))
	defer cancel()
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for held(dir) {
		last := ask(ctx, dir)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
	return fmt.Errorf("the cluster in %s ended while it was waited for", dir)
}

func ask(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, readyName)); err != nil {
		return err
	}
	config, err := Admin(dir)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return answers(client, config.Host+"/readyz")(ctx)
}

// Admin is the administrator's client configuration of the cluster in dir.
func Admin(dir string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, kubeconfigName))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Supervise starts a cluster and holds it until ctx ends or a component does.
// It is the other half of Up: control and report are the supervisor's files 3
// and 4. Before the cluster is ready it gives up when its starter does.
func Supervise(ctx context.Context, options Options, control io.Reader, report io.WriteCloser) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	keep := make(chan struct{})
	go func() {
		if n, _ := control.Read(make([]byte, 1)); n == 0 {
			cancel(errStarterGone)
		}
		close(keep)
	}()

	encoder := json.NewEncoder(report)
	options.Progress = reporter{encoder}
	c, err := Start(ctx, options)
	if err == nil {
		if err = os.WriteFile(filepath.Join(c.Dir(), readyName), nil, 0o600); err != nil {
			err = errors.Join(err, c.Stop())
		}
	}
	if err != nil {
		m := message{Error: err.Error(), InUse: errors.Is(err, ErrInUse)}
		return errors.Join(err, encoder.Encode(m), report.Close())
	}
	if err := errors.Join(encoder.Encode(message{Ready: true}), report.Close()); err != nil {
		return errors.Join(err, c.Stop())
	}
	<-keep
	select {
	case <-ctx.Done():
		return c.Stop()
	case <-c.Ended():
		return c.abandon()
	}
}

// abandon ends a cluster that lost a component. Its files stay, with the
// reason, for whoever wonders; the next start removes them.
func (c *Cluster) abandon() error {
	cause := c.Err()
	err := c.halt()
	for _, name := range []string{readyName, kubeconfigName} {
		err = errors.Join(err, os.Remove(filepath.Join(c.dir, name)))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(c.dir, endedName), []byte(cause.Error()), 0o600), c.lock.Release())
	c.lock = nil
	return errors.Join(cause, err)
}

// Down ends the cluster in dir, if there is one, removes dir, and reports
// whether one ran. It works on what any crash has left, too.
func Down(ctx context.Context, dir string) (ran bool, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := ours(dir); err != nil {
		return false, err
	}
	ran = held(dir)
	path := filepath.Join(dir, lockName)
	if ran {
		if err := end(ctx, dir, path); err != nil {
			return ran, err
		}
	}
	lock, err := filelock.Acquire(ctx, path, "a stop", nil)
	if err != nil {
		return ran, err
	}
	return ran, errors.Join(wipe(dir), lock.Remove())
}

// end asks the owner of dir to end, kills it if it does not, and returns when
// its lock is free.
func end(ctx context.Context, dir, path string) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		pid, err := process.Find(dir, ownerName)
		if err != nil {
			return err
		}
		if pid == os.Getpid() {
			return fmt.Errorf("the cluster in %s is this process's own: stop it with Cluster.Stop", dir)
		}
		if pid != 0 {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop process %d, which runs the cluster in %s: %w", pid, dir, err)
			}
		}
		wait, cancel := context.WithTimeout(ctx, stopWithin)
		lock, err := filelock.Acquire(wait, path, "a stop", nil)
		cancel()
		if err == nil {
			return lock.Release()
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return fmt.Errorf("the cluster in %s cannot be stopped; it is held by %s", dir, filelock.Holder(path))
}
