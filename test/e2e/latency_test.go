//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scaleUp is one growth of the service: its steps are the writes, and the times are when
// the last of its replicas had come that far, counted from the change of the load.
type scaleUp struct {
	from, to                        int32
	steps                           int
	desired, created, ready, served time.Duration
	// start is the longest way of a replica from the write that asked for it to its
	// first order.
	start time.Duration
}

// scaleUp takes the growth since a change of the load apart.
func (w *world) scaleUp(since time.Time) scaleUp {
	w.Helper()
	served := w.orders().First
	var up scaleUp
	changes := slices.DeleteFunc(w.record.since(shop, service, since), func(c change) bool { return c.to < c.from })
	pods := w.record.podsSince(since)
	for i, c := range changes {
		if i == 0 {
			up.from = c.from
		}
		up.to, up.steps, up.desired = c.to, up.steps+1, c.seen.Sub(since)
		for _, p := range pods[:min(len(pods), int(c.to-c.from))] {
			up.created = max(up.created, p.created.Sub(since))
			up.ready = max(up.ready, p.ready.Sub(since))
			first := served[p.name]
			up.served = max(up.served, first.Sub(since))
			up.start = max(up.start, first.Sub(c.seen))
		}
		pods = pods[min(len(pods), int(c.to-c.from)):]
	}
	return up
}

// latencyTable is the decomposition of the latency of growths.
func latencyTable(ups map[string]scaleUp, order []string) string {
	var b strings.Builder
	b.WriteString("\n| load | replicas | writes | last write | last pod created | all Ready | all serving | write to serving, at worst |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	for _, name := range order {
		up := ups[name]
		fmt.Fprintf(&b, "| %s | %d → %d | %d | %s | %s | %s | %s | %s |\n", name, up.from, up.to, up.steps,
			seconds(up.desired), seconds(up.created), seconds(up.ready), seconds(up.served), seconds(up.start))
	}
	return b.String()
}
