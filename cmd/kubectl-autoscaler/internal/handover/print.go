package handover

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// manifest writes the draft as YAML that kubectl applies: the profiles first.
func (d *Draft) manifest(w io.Writer) error {
	objects := make([]any, 0, len(d.Profiles)+1)
	for _, p := range d.Profiles {
		objects = append(objects, p)
	}
	for i, o := range append(objects, d.AutoScaler) {
		text, err := bare(o)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// bare is an object as a person would write it: without a status.
func bare(o any) ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return yaml.Marshal(fields)
}

// advice writes what a person must look at, and the way from here.
func (d *Draft) advice(w io.Writer) {
	if len(d.Notes) > 0 {
		fmt.Fprintln(w, "What to look at:")
		for _, n := range d.Notes {
			fmt.Fprintln(w, "  -", n)
		}
		fmt.Fprintln(w)
	}
	a := d.AutoScaler
	n := "kubectl -n " + a.Namespace
	fmt.Fprintln(w, "The way from here. The other one scales until you take over, and each step can be taken back:")
	step := 0
	say := func(what string, commands ...string) {
		step++
		fmt.Fprintf(w, "\n  %d. %s\n", step, what)
		for _, c := range commands {
			fmt.Fprintln(w, "       "+c)
		}
	}
	if len(d.Before) > 0 {
		say("Before anything else:", d.Before...)
	}
	say("Replay recorded load, offline: does the policy do what it should?"+d.totals(),
		"kubectl autoscaler replay -f draft.yaml --load load.json --compare hpa")
	say("Recommend beside what scales now (dryRun: true), and compare for a week.",
		"kubectl apply -f draft.yaml", n+" get autoscaler "+a.Name+" -o wide")
	say("Stand by (claimPolicy: Wait).",
		n+" patch autoscaler "+a.Name+` --type=merge -p '{"spec":{"dryRun":false}}'`)
	say("Take over, at a time when the two agree: from here on the AutoScaler writes the count.",
		n+" delete "+d.From, n+" wait autoscaler/"+a.Name+" --for=condition=Ready --timeout=60s")
	say("Drill: metric loss, a leader's end, a target made anew (docs/rollout.md). Back, at any time: pause, make the other one again, delete the AutoScaler.",
		n+" patch autoscaler "+a.Name+` --type=merge -p '{"spec":{"paused":true,"pausedUntil":null}}'`,
		n+" wait scalebinding/"+a.Spec.TargetRef.Name+" --for=jsonpath='{.spec.guard}'=Open --timeout=60s")
	fmt.Fprintln(w, "\nA manifest or chart that sets spec.replicas of the Deployment must stop setting it: docs/gitops.md.")
}

// totals says what is to be recorded of the metrics that are means: a replay takes the
// load of the whole service.
func (d *Draft) totals() string {
	var text strings.Builder
	names := strings.NewReplacer("$namespace", strconv.Quote(d.AutoScaler.Namespace), "$target", strconv.Quote(d.AutoScaler.Spec.TargetRef.Name))
	for i, p := range d.Profiles {
		if p.Spec.Semantics != v1alpha1.SemanticsPerReplicaAverage {
			continue
		}
		fmt.Fprintf(&text, "\n     The load of metric %q is the total of all replicas, not their mean: record ", d.AutoScaler.Spec.Metrics[i].Name)
		if mean, ok := strings.CutPrefix(p.Spec.Query, "avg("); ok {
			text.WriteString(cli.Plain(names.Replace("sum(" + mean)))
		} else {
			text.WriteString("its sum over all replicas")
		}
	}
	return text.String()
}

// kind and name of what is handed over, from an argument as kubectl takes it: "hpa web",
// "hpa/web", "scaledobject.keda.sh/web".
func parseReference(args []string) (kind, name string, err error) {
	joined := strings.Join(args, "/")
	kind, name, ok := strings.Cut(joined, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q: say what is handed over, as in hpa/web or scaledobject/web", strings.Join(args, " "))
	}
	switch strings.ToLower(kind) {
	case "hpa", "horizontalpodautoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler.autoscaling", "horizontalpodautoscalers.autoscaling":
		return kindHPA, name, nil
	case "so", "scaledobject", "scaledobjects", "scaledobject.keda.sh", "scaledobjects.keda.sh":
		return kindScaledObject, name, nil
	}
	return "", "", fmt.Errorf("%q: an hpa or a scaledobject can be handed over", kind)
}
