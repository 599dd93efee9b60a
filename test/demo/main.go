// The demo walks the operator's whole path once, on real parts: a control plane,
// a Prometheus, a load that it turns, and the operator built from this checkout.
// It tells what it does, shows kubectl's own answers, verifies every claim it
// makes, and fails loudly if one is not so. Run it from the checkout:
//
//	go run ./test/demo
//
// With DEMO_KEEP=1 everything stays up at the end until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// keepEnv names the environment variable that keeps everything up at the end.
const keepEnv = "DEMO_KEEP"

// Exit codes.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

// parentEvery is how often the demo looks whether its parent is still there.
const parentEvery = 500 * time.Millisecond

var errInterrupted = errors.New("interrupted")

func main() { os.Exit(run()) }

func run() int {
	// The libraries' own remarks are not part of the story.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, interrupt := context.WithCancelCause(context.Background())
	defer interrupt(nil)
	tell := newNarrator(os.Stdout)
	signals := make(chan os.Signal, 1)
	// SIGPIPE: whoever listened is gone, which must not cut the cleaning up short.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		signal.Stop(signals)
		signal.Ignore(syscall.SIGPIPE)
		tell.say("", "Stopping everything; a second Ctrl-C ends at once.")
		interrupt(errInterrupted)
	}()
	go followParent(ctx, os.Getppid(), interrupt)

	env, err := prepare(ctx, tell)
	if err == nil {
		err = perform(ctx, env, tell)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		tell.say("Interrupted; everything was stopped and removed.")
		return exitInterrupted
	}
	tell.failed(err.Error())
	return exitFailed
}

// followParent interrupts the demo when its parent has gone: a signal to `make`
// or to `go run` may end those alone.
func followParent(ctx context.Context, parent int, interrupt context.CancelCauseFunc) {
	ticker := time.NewTicker(parentEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if os.Getppid() != parent {
				interrupt(errInterrupted)
			}
		}
	}
}

// perform runs the demo in a prepared environment and cleans up after it.
func perform(ctx context.Context, env *environment, tell *narrator) error {
	playing, stop := context.WithCancel(ctx)
	defer stop()
	d := &demo{env: env, tell: tell}
	err := d.play(playing)
	switch {
	case err == nil:
		tell.summary()
		tell.write("\n" + tell.paint(good, "Every claim above was verified.") + "\n")
	case ctx.Err() != nil:
		err = errInterrupted
	default:
		tell.failed(fmt.Sprintf("The demo failed at step %d.\n%s", len(tell.steps), err))
		d.explain(playing)
		err = fmt.Errorf("the demo failed at step %d, see above", len(tell.steps))
	}
	if os.Getenv(keepEnv) == "1" && ctx.Err() == nil {
		d.stay(ctx)
	}
	// The watches end before what they watch.
	stop()
	if closeErr := env.close(); closeErr != nil {
		return fmt.Errorf("the demo is over, but cleaning up failed: %w", closeErr)
	}
	return err
}
