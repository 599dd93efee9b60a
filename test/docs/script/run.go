package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// giveUp is when a block of commands counts as one that hangs.
const giveUp = 3 * time.Minute

// Reader types what a document says.
type Reader struct {
	// Dir is where the commands are typed and the files are.
	Dir string
	// Env is the commands' environment; kubectl is found and configured by it.
	Env []string
	// Log shows the commands and what they print.
	Log io.Writer
}

// Follow goes through a document from its beginning to its end.
func (r *Reader) Follow(ctx context.Context, path string) error {
	blocks, err := Read(path)
	if err != nil {
		return err
	}
	for i := range blocks {
		if err := r.prepare(ctx, &blocks[i]); err != nil {
			return fmt.Errorf("%s:%d: %w", path, blocks[i].Line, err)
		}
	}
	for i := range blocks {
		if blocks[i].Language != Shell || blocks[i].Is(Elsewhere) {
			continue
		}
		var expected string
		if i+1 < len(blocks) && blocks[i+1].Language == Text {
			expected = blocks[i+1].Text
		}
		if err := r.follow(ctx, &blocks[i], expected); err != nil {
			return fmt.Errorf("%s:%d: %w", path, blocks[i].Line, err)
		}
	}
	return nil
}

// prepare writes the file that a block is, and applies what is given.
func (r *Reader) prepare(ctx context.Context, b *Block) error {
	name := b.File()
	if name == "" {
		if b.Is(Given) {
			return errors.New("what is given must be a file")
		}
		return nil
	}
	path := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(b.Text), 0o600); err != nil || !b.Is(Given) {
		return err
	}
	_, err := r.Type(ctx, "kubectl apply -f "+name)
	return err
}

func (r *Reader) follow(ctx context.Context, b *Block, expected string) error {
	printed, err := r.Type(ctx, b.Text)
	var exit *exec.ExitError
	switch {
	case err != nil && (!b.Is(Refused) || !errors.As(err, &exit)):
		return fmt.Errorf("%w, having printed:\n%s", err, printed)
	case err == nil && b.Is(Refused):
		return fmt.Errorf("it is to be refused, and was not, having printed:\n%s", printed)
	}
	return missing(expected, printed)
}

// Type runs commands as in a terminal, and ends at the first that fails. It gives what
// they print.
func (r *Reader) Type(ctx context.Context, commands string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, giveUp, errors.New("it takes too long"))
	defer cancel()
	fmt.Fprintf(r.Log, "$ %s\n", strings.TrimSpace(commands))
	command := exec.CommandContext(ctx, "bash", "-o", "errexit", "-o", "nounset", "-o", "pipefail", "-c", commands)
	command.Dir, command.Env = r.Dir, r.Env
	// What the shell has started may hold its output for longer than it lives.
	command.WaitDelay = time.Second
	printed, err := command.CombinedOutput()
	_, _ = io.Copy(r.Log, bytes.NewReader(printed))
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(printed), err
}

// missing says which line is not in what was printed. Lines are broken and columns
// aligned as it suits a page, so that white space counts as one blank.
func missing(expected, printed string) error {
	all := strings.Join(strings.Fields(printed), " ")
	for line := range strings.Lines(expected) {
		for part := range strings.SplitSeq(line, "…") {
			if part = strings.Join(strings.Fields(part), " "); !strings.Contains(all, part) {
				return fmt.Errorf("%q is not in what was printed:\n%s", part, printed)
			}
		}
	}
	return nil
}
