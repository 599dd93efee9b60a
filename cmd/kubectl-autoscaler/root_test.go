package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// silent is a pipe that nobody writes into.
type silent struct{}

func (silent) Read([]byte) (int, error) { select {} }

func TestReadingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var out, errs bytes.Buffer
	streams := cli.Streams{In: silent{}, Out: &out, Err: &errs}
	assert.Equal(t, cli.ExitTrouble, cli.Execute(ctx, root(streams), streams, []string{"validate", "-f", "-"}))
	assert.Equal(t, "error: interrupted\n", errs.String())
}

func TestACommandThatDoesNotExistIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		args      []string
		code      int
		out, errs string
	}{
		"nothing":           {nil, cli.ExitOK, "Usage:", ""},
		"misspelled":        {[]string{"vaildate"}, cli.ExitTrouble, "", "error: unknown command \"vaildate\" for \"kubectl autoscaler\"\n\nDid you mean this?\n\tvalidate\n"},
		"unlike any":        {[]string{"bogus"}, cli.ExitTrouble, "", `unknown command "bogus" for "kubectl autoscaler"`},
		"completion":        {[]string{"completion"}, cli.ExitOK, "Usage:", ""},
		"another shell":     {[]string{"completion", "nope"}, cli.ExitTrouble, "", `unknown command "nope" for "kubectl autoscaler completion"`},
		"a shell":           {[]string{"completion", "bash"}, cli.ExitOK, "__start_kubectl-autoscaler", ""},
		"with an escape":    {[]string{"\x1b[2J"}, cli.ExitTrouble, "", `unknown command "\x1b[2J"`},
		"a flag of another": {[]string{"validate", "--\x1b[2J"}, cli.ExitTrouble, "", `unknown flag: --\x1b[2J`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			streams := cli.Streams{In: &bytes.Buffer{}, Out: &out, Err: &errs}
			assert.Equal(t, tc.code, cli.Execute(t.Context(), root(streams), streams, tc.args))
			assert.Contains(t, out.String(), tc.out)
			assert.Contains(t, errs.String(), tc.errs)
			assert.Equal(t, tc.errs == "", errs.Len() == 0, errs.String())
		})
	}
}
