package main

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheShownCommandIsOneThatAShellTakesAsTheSameWords(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"plain words are shown as they are", []string{"-n", "production", "get", "autoscaler,scalebinding"}, "kubectl -n production get autoscaler,scalebinding"},
		{"JSON is quoted", []string{"-p", `{"spec":{"paused":true}}`}, `kubectl -p '{"spec":{"paused":true}}'`},
		{"an empty argument is quoted", []string{""}, "kubectl ''"},
		{"a quote within an argument is closed and opened again", []string{"it's"}, `kubectl 'it'\''s'`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line := commandLine(tt.args)
			assert.Equal(t, tt.want, line)

			words, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+line[len("kubectl "):]).Output()
			require.NoError(t, err)
			var want bytes.Buffer
			for _, arg := range tt.args {
				want.WriteString(arg + "\n")
			}
			assert.Equal(t, want.String(), string(words))
		})
	}
}

// The "kubectl" of these tests is the shell: do and refused judge exit codes and
// output alone.
func shell(out *bytes.Buffer) *kubectl {
	return &kubectl{path: "sh", tell: logNarrator(out)}
}

func TestACommandThatFailsIsAFailureWithItsOutput(t *testing.T) {
	var out bytes.Buffer

	err := shell(&out).do(t.Context(), "-c", "echo no such thing >&2; exit 3")

	var failed *failure
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.seen, "exit status 3")
	assert.Contains(t, failed.seen, "no such thing")
	assert.Contains(t, out.String(), "   no such thing\n", "the output is shown as it is")
}

func TestARefusal(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		wantSeen     string
	}{
		{"that names the holder is what is expected", "echo held by x; exit 1", ""},
		{"that does not come is a failure", "echo created", "it was accepted:\ncreated"},
		{"for another reason is a failure", "echo connection refused; exit 1", "connection refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer

			err := shell(&out).refused(t.Context(), []string{"held by x"}, "-c", tt.script)

			if tt.wantSeen == "" {
				assert.NoError(t, err)
				return
			}
			var failed *failure
			require.ErrorAs(t, err, &failed)
			assert.Contains(t, failed.seen, tt.wantSeen)
		})
	}
}

func TestAProgramThatIsNotThereIsNoRefusal(t *testing.T) {
	var out bytes.Buffer
	k := &kubectl{path: "/no/such/kubectl", tell: logNarrator(&out)}

	err := k.refused(t.Context(), nil, "get", "pods")

	require.Error(t, err)
	var failed *failure
	assert.NotErrorAs(t, err, &failed)
}
