package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// crowd is a namespace with n other AutoScalers of 20 replicas each, as stored.
func crowd(n int) rules.Input {
	in := rules.Input{Object: builders.MakeAutoScaler("shop", "web").Obj()}
	for i := range n {
		other := builders.MakeAutoScaler("shop", fmt.Sprintf("asc-%d", i)).UID(fmt.Sprint(i)).Obj()
		other.ResourceVersion = "1"
		in.Others = append(in.Others, *other)
	}
	return in
}

const budget = "object.spec.maxReplicas + others.map(o, o.spec.maxReplicas).sum() <= 1000000"

func TestALargeNamespaceHasABudgetToo(t *testing.T) {
	in := crowd(2000)
	for limit, want := range map[int]bool{20 * 2001: true, 20*2001 - 1: false} {
		assert.Equal(t, want, allowed(t, fmt.Sprintf("object.spec.maxReplicas + others.map(o, o.spec.maxReplicas).sum() <= %d", limit), in))
	}
}

func TestALoopInALoopIsBoundedByWhatItReads(t *testing.T) {
	const pairs = "others.all(a, others.all(b, !a.metadata.annotations['note'].contains(b.metadata.name)))"
	in := crowd(50)
	note := func(length int) {
		for i := range in.Others {
			in.Others[i].Annotations = map[string]string{"note": strings.Repeat("x", length)}
		}
	}
	note(10)
	assert.True(t, allowed(t, pairs, in))
	note(10_000)
	errs, _ := newSet(t, deny(pairs)).Check(t.Context(), in)
	require.Len(t, errs, 1)
	assert.ErrorContains(t, errs[0], "costs more than the limit")
}

func BenchmarkBudget(b *testing.B) {
	set, err := rules.New([]rules.Config{deny(budget)}, v1alpha1.Defaults{})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{0, 100, 1000, 10000} {
		in := crowd(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if errs, _ := set.Check(b.Context(), in); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
	in := crowd(1000)
	b.Run("1000-changed", func(b *testing.B) {
		version := 0
		for b.Loop() {
			version++
			for i := range in.Others {
				in.Others[i].ResourceVersion = fmt.Sprint(version)
			}
			if errs, _ := set.Check(b.Context(), in); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
}
