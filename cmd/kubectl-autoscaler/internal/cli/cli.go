// Package cli is what all commands of the plugin share towards the person: streams,
// exit codes, colors.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit codes.
const (
	// ExitOK: nothing to complain of.
	ExitOK = 0
	// ExitFound: the command did its work, and what it looked at is not as it should be.
	ExitFound = 1
	// ExitTrouble: the command could not do its work.
	ExitTrouble = 2
)

// ErrFound ends a command that has printed what it found with ExitFound.
var ErrFound = errors.New("something was found")

// Streams are a command's input and outputs.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Execute runs a command and gives the exit code. An error but ErrFound is printed, in one
// paragraph, with no stack and no usage.
func Execute(ctx context.Context, c *cobra.Command, streams Streams, args []string) int {
	c.SetArgs(args)
	strict(c, args)
	err := c.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrFound):
		return ExitFound
	case ctx.Err() != nil:
		fmt.Fprintln(streams.Err, "error: interrupted")
		return ExitTrouble
	}
	fmt.Fprintln(streams.Err, "error:", plain(strings.TrimSpace(err.Error()), "\n\t"))
	return ExitTrouble
}

// strict refuses an argument where a command only has others: cobra shows help for it, and
// ends with 0. The root is strict by itself, and suggests what may have been meant.
func strict(root *cobra.Command, args []string) {
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			c.Args, c.RunE = cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// Plain writes out what would move a terminal's cursor or hide a part of a text: file
// names and files may hold anything. It is one line.
func Plain(s string) string { return plain(s, "") }

func plain(s, but string) string {
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case strings.ContainsRune(but, r) || unicode.IsGraphic(r):
			b.WriteString(s[:size])
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		s = s[size:]
	}
	return b.String()
}

// Terminal says whether a writer is a terminal, and so whether progress and colors are
// for a person.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Color gives text a color on a terminal whose user has not refused colors
// (https://no-color.org), and nothing otherwise.
type Color struct{ on bool }

// NewColor is for a writer.
func NewColor(w io.Writer) Color {
	_, refused := os.LookupEnv("NO_COLOR")
	return Color{on: Terminal(w) && !refused && os.Getenv("TERM") != "dumb"}
}

// Bad is for what is wrong.
func (c Color) Bad(s string) string { return c.in("31", s) }

// Good is for what is right.
func (c Color) Good(s string) string { return c.in("32", s) }

// Note is for what is to be looked at.
func (c Color) Note(s string) string { return c.in("33", s) }

// Faint is for what is read last.
func (c Color) Faint(s string) string { return c.in("2", s) }

func (c Color) in(code, s string) string {
	if !c.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
