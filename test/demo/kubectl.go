package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// kubectl runs the real one as a newcomer with the administrator's kubeconfig
// would, and shows each command with kubectl's own answer.
type kubectl struct {
	path string
	// dir is the working directory: the checkout's root, so that the shown
	// commands can be typed there.
	dir  string
	env  []string
	tell *narrator
}

// newKubectl keeps kubectl away from the user's own settings and caches.
func newKubectl(path, dir, kubeconfig, cache string, tell *narrator) *kubectl {
	return &kubectl{path: path, dir: dir, tell: tell, env: append(os.Environ(),
		"KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+cache, "KUBERC=off")}
}

// do runs a command that must succeed.
func (k *kubectl) do(ctx context.Context, args ...string) error {
	output, err := k.run(ctx, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &failure{expected: commandLine(args) + " succeeds", seen: fmt.Sprintf("%s, having printed:\n%s", exit, output)}
	}
	return err
}

// refused runs a command that the API server must refuse with an answer that
// holds all the given texts.
func (k *kubectl) refused(ctx context.Context, texts []string, args ...string) error {
	output, err := k.run(ctx, args...)
	var exit *exec.ExitError
	if err == nil {
		return &failure{expected: commandLine(args) + " is refused", seen: "it was accepted:\n" + output}
	}
	if !errors.As(err, &exit) {
		return err
	}
	for _, text := range texts {
		if !strings.Contains(output, text) {
			return &failure{expected: fmt.Sprintf("%s is refused with a message that says %q", commandLine(args), text), seen: output}
		}
	}
	return nil
}

func (k *kubectl) run(ctx context.Context, args ...string) (string, error) {
	k.tell.command(commandLine(args))
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Dir, cmd.Env = k.dir, k.env
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	k.tell.output(string(output))
	return string(output), err
}

// unquoted is what a shell takes as one word as it is.
var unquoted = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// commandLine is how the command would be typed in a shell.
func commandLine(args []string) string {
	words := make([]string, 0, len(args)+1)
	words = append(words, "kubectl")
	for _, arg := range args {
		if !unquoted.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
