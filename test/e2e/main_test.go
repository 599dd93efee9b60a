//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestAcceptance tells the stories one after the other, on one cluster. Each begins with
// an operator that is installed, and leaves it so; what it makes besides it removes.
func TestAcceptance(t *testing.T) {
	begun := time.Now()
	w := newWorld(t)
	w.report("## %s\n\nThe cluster, its images and what is measured were there after %s.",
		time.Now().UTC().Format(time.DateOnly), time.Since(begun).Round(time.Second))

	if !w.story("Install", (*world).install) {
		t.Fatal("there is nothing to go on with")
	}
	w.story("Closed loop", (*world).closedLoop)
	w.story("Drills", (*world).drills)
	w.story("Permissions", (*world).permissions)
	w.story("The life of a release", (*world).life)
	w.story("Two installs", (*world).twoInstalls)
	w.report("\nAll of it took %s.", time.Since(begun).Round(time.Second))
}

// story runs a part of the acceptance, and reports it under a heading of its own.
func (w *world) story(name string, tell func(*world)) bool {
	return w.do(name, func(w *world) {
		begun := time.Now()
		w.report("\n### %s\n", name)
		w.Cleanup(func() { w.report("\n(%s)", time.Since(begun).Round(time.Second)) })
		tell(w)
	})
}
