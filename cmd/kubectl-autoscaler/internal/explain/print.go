package explain

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/scaling"
)

// print tells a view to a person.
func (v *View) print(w io.Writer, now time.Time, c cli.Color) {
	if v.SilentSeconds > 0 {
		fmt.Fprintln(w, c.Bad(fmt.Sprintf("The operator has not looked for %s, and should each %d s: it may be down. What follows holds once it is back.",
			duration.HumanDuration(time.Duration(v.SilentSeconds)*time.Second), v.PollSeconds))+"\n")
	}
	fmt.Fprintf(w, "AutoScaler %s/%s scales Deployment %s: %d to %d replicas, looked at every %d s\n\n", v.Namespace, v.AutoScaler, cli.Plain(v.Target), v.MinReplicas, v.MaxReplicas, v.PollSeconds)
	v.printCount(w)
	v.printOwner(w, c)
	if s := v.Shadow; s != nil {
		fmt.Fprintf(w, "Dry run     it would have %d, %+d\n", s.Replicas, s.Divergence)
	}
	if k := v.Contention; k != nil {
		fmt.Fprintf(w, "Contention  %s\n", c.Bad(fmt.Sprintf("%s changed the count from %d to %d, %d in a row; nothing is written before %s",
			cmp.Or(cli.Plain(k.Manager), "somebody"), k.From, k.To, k.Changes, k.RetryTime.UTC().Format(time.TimeOnly))))
	}
	if l := v.LastWrite; l != nil {
		from := ""
		if l.From != nil {
			from = fmt.Sprintf("from %d ", *l.From)
		}
		fmt.Fprintf(w, "Last write  %sto %d, %s ago\n", from, l.To, duration.HumanDuration(now.Sub(l.Time.Time)))
	}
	v.printDecision(w, now)
	v.printNext(w, c)
	printConditions(w, v.Conditions, now, c)
}

func (v *View) printCount(w io.Writer) {
	switch why := v.Unread["deployment"]; {
	case why != "":
		fmt.Fprintf(w, "Count       cannot be read: %s\n", cli.Plain(why))
		return
	case v.Deployment == nil:
		fmt.Fprintf(w, "Count       there is no Deployment %s\n", cli.Plain(v.Target))
		return
	}
	fmt.Fprintf(w, "Count       %d wanted, %d ready\n", v.Deployment.Replicas, v.Deployment.Ready)
}

func (v *View) printOwner(w io.Writer, c cli.Color) {
	switch b := v.Binding; {
	case v.Unread["binding"] != "":
		fmt.Fprintf(w, "Owner       cannot be read: %s\n", cli.Plain(v.Unread["binding"]))
	case b == nil || b.Owner == "":
		fmt.Fprintln(w, "Owner       nobody")
	case !b.Mine:
		fmt.Fprintf(w, "Owner       %s (epoch %d)\n", c.Note(cli.Plain(fmt.Sprintf("AutoScaler %s, %s", b.Owner, b.Phase))), b.Epoch)
	case b.WaitsFor != "":
		fmt.Fprintf(w, "Owner       %s (epoch %d)\n", c.Note(cli.Plain(fmt.Sprintf("claimed by this AutoScaler, which waits for %s to go", b.WaitsFor))), b.Epoch)
	default:
		fmt.Fprintf(w, "Owner       this AutoScaler, %s (epoch %d)\n", cli.Plain(string(b.Phase)), b.Epoch)
		switch {
		case v.Unread["guard"] != "":
			fmt.Fprintf(w, "Guard       closed, and whether the API server has been told cannot be read: %s\n", cli.Plain(v.Unread["guard"]))
		case b.Guard == v1alpha1.GuardClosed && b.Indexed:
			fmt.Fprintln(w, "Guard       closed: the API server refuses writes of the count by others")
		case b.Guard == v1alpha1.GuardClosed:
			fmt.Fprintln(w, "Guard       closing: the API server has not been told yet")
		default:
			fmt.Fprintln(w, "Guard       open: others may write the count")
		}
	}
}

// printDecision tells the last decision stage by stage.
func (v *View) printDecision(out io.Writer, now time.Time) {
	d := v.Decision
	if d == nil {
		fmt.Fprintln(out, "\nNothing has been decided yet.")
		return
	}
	fmt.Fprintf(out, "\nThe last decision, in the status for %s: %s\n\n", duration.HumanDuration(now.Sub(d.Time.Time)), cli.Plain(v.verdict()))
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintf(w, "  METRIC\tSAMPLE\tASKS FOR\tTOLERANCE\tBOUNDS %d-%d\tWINDOW\tSTEP\tLIMITED BY\n", d.MinReplicas, d.MaxReplicas)
	for i := range d.Metrics {
		m := &d.Metrics[i]
		if m.Validity == scaling.Invalid.String() {
			fmt.Fprintf(w, "  %s\t%s: %s\t-\t-\t-\t-\t-\t-\n", cli.Plain(m.Name), cli.Plain(m.Validity), cli.Plain(m.Reason))
			continue
		}
		sample := m.Validity
		if m.Reason != "" {
			sample += ": " + m.Reason
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", cli.Plain(m.Name), cli.Plain(sample), m.Raw, m.Tolerated, m.Bounded, m.Stabilized, m.Limited, cmp.Or(cli.Plain(m.Rule), "-"))
	}
	_ = w.Flush() // what the writer below says is what counts
	fmt.Fprintf(out, "  result: the highest, %d%s\n", d.Result, cli.Plain(because(d)))
}

// verdict is the last decision in a few words, and what has come of it.
func (v *View) verdict() string {
	d := v.Decision
	switch way := direction(d.Current, d.Result); {
	case d.Result == d.Current:
		return fmt.Sprintf("stay at %d", d.Result)
	case v.Still == v1alpha1.ReasonDryRun:
		return fmt.Sprintf("would go %s from %d to %d (dry run)", way, d.Current, d.Result)
	case v.Still != "":
		return fmt.Sprintf("would go %s from %d to %d (nothing is written: %s)", way, d.Current, d.Result, v.Still)
	default:
		return fmt.Sprintf("from %d %s to %d", d.Current, way, d.Result)
	}
}

func because(d *v1alpha1.DecisionTrace) string {
	var parts []string
	if d.Rule != "" {
		parts = append(parts, "limited by "+d.Rule)
	}
	if len(d.Schedules) > 0 {
		parts = append(parts, "schedules in force: "+strings.Join(d.Schedules, ", "))
	}
	if d.Freeze != "" {
		parts = append(parts, "frozen: "+d.Freeze)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// printNext tells what will happen if the load stays.
func (v *View) printNext(w io.Writer, c cli.Color) {
	fmt.Fprint(w, "\nNext        ")
	switch {
	case v.Unknown != "":
		fmt.Fprintf(w, "cannot be told: %s\n", cli.Plain(v.Unknown))
		return
	case len(v.Next) == 0:
		fmt.Fprintln(w, "nothing, unless the load changes")
		return
	}
	from, moves := v.from(), make([]string, len(v.Next))
	for i, m := range v.Next {
		moves[i] = direction(from, m.Replicas) + " to " + strconv.Itoa(int(m.Replicas)) + " " + in(m)
		from = m.Replicas
	}
	text := strings.Join(moves, ", ") + ", unless the load changes"
	if v.Still != "" {
		text = c.Note("nothing is written ("+cli.Plain(v.Still)+")") + "; it would go " + text
	}
	fmt.Fprintln(w, text)
}

// from is the count that the first move is made from.
func (v *View) from() int32 {
	switch {
	case v.Shadow != nil:
		return v.Shadow.Replicas
	case v.Deployment != nil:
		return v.Deployment.Replicas
	}
	return v.Decision.Result
}

func direction(from, to int32) string {
	if to > from {
		return "up"
	}
	return "down"
}

func in(m Move) string {
	switch {
	case m.Late > 0:
		return "once the operator is back, which has been due for " + duration.HumanDuration(m.Late)
	case m.In < time.Second:
		return "at the next look"
	}
	return "in " + duration.HumanDuration(m.In)
}

func printConditions(out io.Writer, conditions []metav1.Condition, now time.Time, c cli.Color) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "CONDITION\tSTATUS\tSINCE\tREASON\tMESSAGE")
	for _, condition := range conditions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cli.Plain(condition.Type), cli.Plain(string(condition.Status)), duration.HumanDuration(now.Sub(condition.LastTransitionTime.Time)),
			cli.Plain(condition.Reason), c.Faint(cli.Plain(condition.Message)))
	}
	_ = w.Flush()
}
