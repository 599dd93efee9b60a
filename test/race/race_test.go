//go:build integration

package race

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/test/controlplane"
)

const (
	// roundsEnv sets how many rounds of each scenario are run, seedEnv what chance
	// begins with.
	roundsEnv, seedEnv = "RACE_ROUNDS", "RACE_SEED"
	shortRounds        = 40
	// roundWithin is each round's deadline: the grace of a claim whose owner was not
	// stored (45 s), the lease of a leader that was killed (15 s), its heir's first
	// evaluations and their back-off, and as much again for a slow machine.
	roundWithin = 3 * time.Minute
	// tooMany failures end the run.
	tooMany = 5
)

// tally counts what happened, and how long rounds took.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	times  map[string][]time.Duration
	late   []string
	writes int
	failed int
}

func (c *tally) add(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// run is a world with its rounds.
type run struct {
	*world
	tally tally
}

// TestFC30_OneOwnerWhateverGoesWrong runs the races beside one another, each worker
// in a namespace of its own.
func TestFC30_OneOwnerWhateverGoesWrong(t *testing.T) {
	rounds, seed := fromEnv(t, roundsEnv, shortRounds), uint64(fromEnv(t, seedEnv, 1)) //nolint:gosec // any number will do
	t.Logf("%s=%d %s=%d: %d scenarios", roundsEnv, rounds, seedEnv, seed, len(scenarios))
	w := startWorld(t, seed)
	r := &run{world: w, tally: tally{counts: map[string]int{}, times: map[string][]time.Duration{}}}
	w.count = func(o outcome) { r.tally.add(func() { r.tally.counts[string(o)]++ }) }
	began := time.Now()
	r.all(rounds)
	r.report(time.Since(began))
	if r.tally.failed == 0 {
		r.everyWriteWasSeen()
		r.somethingWentWrong(rounds)
	}
}

func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "%s must be a number", name)
	require.Positive(t, n, name)
	return n
}

// all runs the rounds of all scenarios.
func (r *run) all(rounds int) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	type job struct{ scenario, number int }
	jobs := make(chan job)
	var workers sync.WaitGroup
	for n := range 12 * runtime.NumCPU() {
		namespace := fmt.Sprintf("race-%d", n)
		require.NoError(r, r.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		workers.Go(func() {
			for j := range jobs {
				if !r.round(ctx, j.scenario, j.number, namespace) {
					r.tally.add(func() {
						r.tally.failed++
						if r.tally.failed == tooMany {
							cancel(errors.New("too many rounds failed"))
						}
					})
				}
			}
		})
	}
	progress := time.NewTicker(time.Minute)
	defer progress.Stop()
	for i := 0; i < rounds*len(scenarios) && ctx.Err() == nil; {
		select {
		case jobs <- job{i % len(scenarios), i / len(scenarios)}:
			i++
		case <-progress.C:
			r.Logf("round %d of %d", i, rounds*len(scenarios))
		case <-ctx.Done():
		}
	}
	close(jobs)
	workers.Wait()
}

// round runs one round and judges it.
func (r *run) round(parent context.Context, scenario, number int, namespace string) bool {
	ctx, cancel := context.WithTimeoutCause(parent, roundWithin, fmt.Errorf("%s are over", roundWithin))
	defer cancel()
	s := scenarios[scenario]
	o := &round{
		world: r.world, ctx: ctx, scenario: s.name, number: number, namespace: namespace,
		random: r.random(s.name, number), stored: map[*contender]types.NamespacedName{},
	}
	began := time.Now()
	err := s.run(o)
	if err == nil {
		err = o.end()
	}
	if parent.Err() != nil {
		return true // given up for the sake of others, which have failed
	}
	r.tally.add(func() { r.tally.times[s.name] = append(r.tally.times[s.name], time.Since(began)) })
	ok := err == nil
	for _, key := range o.targets {
		ok = r.verdict(o, key, err) && ok
	}
	return ok
}

// verdict judges the record of one of a round's Deployments.
func (r *run) verdict(o *round, key types.NamespacedName, failure error) bool {
	record := r.recorder.ends(key)
	v := judge(key, record, r.recorder.lastHPALook)
	result, m, info := linearizable(v.history)
	if failure == nil {
		v.settled(record)
	}
	r.tally.add(func() {
		r.tally.late = append(r.tally.late, prefixed(key.Name, v.late)...)
		r.tally.writes += v.writes
	})
	if result == porcupine.Ok && len(v.problems) == 0 && failure == nil {
		return true
	}
	path := filepath.Join(outputDir(r.T), fmt.Sprintf("seed-%d-%s.html", r.seed, key.Name))
	if err := porcupine.VisualizePath(m, info, path); err != nil {
		r.Errorf("drawing the history: %v", err)
	}
	r.Errorf("seed %d, scenario %s, round %d, Deployment %s:\nthe round: %v\nlinearizable: %s\nproblems:\n  %s\nlate writes:\n  %s\nhistory (drawn in %s):\n%sbinding:\n%s",
		r.seed, o.scenario, o.number, key, failure, result, strings.Join(v.problems, "\n  "), strings.Join(v.late, "\n  "), path, narrate(v.history), seen(record))
	return false
}

func prefixed(name string, lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, name+": "+line)
	}
	return out
}

// seen is what the watch saw of a Deployment and its binding.
func seen(t *target) string {
	var b strings.Builder
	for _, s := range t.bindings {
		fmt.Fprintf(&b, "  %d: epoch %d owner %q [%.8s] target [%.8s] confirmed %v pending %v deleted %v\n",
			s.revision, s.epoch, s.name, s.owner, s.targetUID, s.confirmed, s.pending, s.deleted)
	}
	for _, d := range t.deployments {
		fmt.Fprintf(&b, "  %d: Deployment [%.8s] %d replicas, created %v deleted %v\n", d.revision, d.uid, d.replicas, d.created, d.deleted)
	}
	return b.String()
}

// report tells what the run was made of.
func (r *run) report(took time.Duration) {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	total := 0
	for _, s := range scenarios {
		times := r.tally.times[s.name]
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		total += len(times)
		r.Logf("%-6s %5d rounds: median %s, 99th %s, longest %s", s.name, len(times),
			times[len(times)/2].Round(time.Millisecond), times[len(times)*99/100].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
	}
	r.Logf("%d rounds in %s: %s a round; %d scale writes; answers: %v", total, took.Round(time.Second),
		(took / time.Duration(max(total, 1))).Round(time.Millisecond), r.tally.writes, r.tally.counts)
	r.Logf("faults: %s; admissions answered by each operator: %d, %d", r.faults,
		r.forwarder.served[0].Load(), r.forwarder.served[1].Load())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.operators {
		r.Logf("operator %d: started %d times, killed %d times, ended by itself %d times", o.index, o.starts, o.kills, o.ends)
	}
	r.Logf("%d writes were under way when the Deployment changed hands, and stored before the next holder was confirmed", len(r.tally.late))
	for _, line := range r.tally.late {
		r.Log("  " + line)
	}
}

// everyWriteWasSeen holds the record against the API server's own: whatever was
// written to a scale was seen, and it was the operators alone who wrote.
func (r *run) everyWriteWasSeen() {
	r.Helper()
	requests, err := r.controlPlane.Writes(r.Context(), "")
	require.NoError(r, err)
	audited := map[types.NamespacedName]int{}
	for _, q := range requests {
		if q.Resource != "deployments" || q.Subresource != "scale" || q.Code != http.StatusOK {
			continue
		}
		assert.Equal(r, controlplane.OperatorUser, q.User, "who wrote the scale of %s/%s", q.Namespace, q.Name)
		audited[types.NamespacedName{Namespace: q.Namespace, Name: q.Name}]++
	}
	_, _ = r.recorder.seen(func() bool {
		assert.Equal(r, audited, r.recorder.stored, "the API server's log of scale writes, and what the watch saw")
		return true
	})
}

// somethingWentWrong: a run in which nothing did would prove nothing.
func (r *run) somethingWentWrong(rounds int) {
	r.Helper()
	for _, kind := range []faultKind{refusal, stall, drop, loss, conflict} {
		assert.Positive(r, r.faults.counted(kind), "faults of the kind %q", kind)
	}
	for i := range r.operators {
		assert.Positive(r, r.forwarder.served[i].Load(), "admissions that operator %d answered", i)
	}
	assert.Positive(r, r.faults.counted(killBefore)+r.faults.counted(killAfter), "operators killed in the middle of a claim")
	assert.GreaterOrEqual(r, r.tally.counts[string(refusedHeld)], rounds, "refusals that name a holder")
	assert.Positive(r, r.tally.counts["both stored"]+r.tally.counts["HPA refused"]+r.tally.counts[string(refusedForHPA)], "meetings with an HPA")
}
