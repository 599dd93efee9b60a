package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// spinEvery is how often a terminal's waiting line is drawn anew.
	spinEvery = 120 * time.Millisecond
	// patience is the wait that is not worth a line where lines stay.
	patience = time.Second
	// remindEvery is how often a wait is mentioned again where lines stay.
	remindEvery = 10 * time.Second
)

// spinner is drawn one after the other; each is one column wide.
var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// style is a terminal's escape sequence for one kind of text.
type style string

const (
	plain  style = ""
	strong style = "\x1b[1m"
	faint  style = "\x1b[2m"
	good   style = "\x1b[32m"
	bad    style = "\x1b[1;31m"
	typed  style = "\x1b[36m"
	reset  style = "\x1b[0m"
)

// narrator tells the demo: titles, what is about to happen, commands with their
// output, what was verified. On a terminal waits are one line that is drawn over
// and over; elsewhere, as in a log, lines are only added. It is safe for
// concurrent use.
type narrator struct {
	out io.Writer
	// terminal: lines may be drawn over. colored: styles are used.
	terminal, colored bool
	now               func() time.Time

	mu      sync.Mutex
	steps   []stepTime
	waiting bool // the last line on the terminal is a wait's
}

// stepTime is when a step began.
type stepTime struct {
	title string
	begun time.Time
}

// newNarrator tells to a file; colors are for terminals whose user did not
// object (https://no-color.org).
func newNarrator(out *os.File) *narrator {
	terminal := term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
	return &narrator{out: out, terminal: terminal, colored: terminal && os.Getenv("NO_COLOR") == "", now: time.Now}
}

// paint styles a text where that is wanted.
func (n *narrator) paint(s style, text string) string {
	if !n.colored || s == plain {
		return text
	}
	return string(s) + text + string(reset)
}

// write adds text, in place of a waiting line if there is one.
func (n *narrator) write(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.erase()
	fmt.Fprint(n.out, text)
}

// erase removes the waiting line; the caller holds the lock.
func (n *narrator) erase() {
	if n.waiting {
		fmt.Fprint(n.out, "\r\x1b[K")
		n.waiting = false
	}
}

// step begins a numbered step.
func (n *narrator) step(title string) {
	n.mu.Lock()
	n.steps = append(n.steps, stepTime{title, n.now()})
	number := len(n.steps)
	n.mu.Unlock()
	n.write("\n" + n.paint(strong, fmt.Sprintf("━━ %d. %s", number, title)) + "\n")
}

// say explains in plain words, a line each.
func (n *narrator) say(lines ...string) {
	for _, line := range lines {
		n.write(indent(line))
	}
}

// indent makes a line of the text; an empty one stays empty.
func indent(line string) string { return strings.TrimRight("   "+line, " \n") + "\n" }

// command shows what is typed.
func (n *narrator) command(line string) { n.write("\n   " + n.paint(typed, "$ "+line) + "\n") }

// output shows what a command answered, as it is.
func (n *narrator) output(text string) {
	for line := range strings.Lines(text) {
		n.write(indent(line))
	}
}

// verified reports a claim that was checked.
func (n *narrator) verified(format string, args ...any) {
	n.write("   " + n.paint(good, "✓") + " " + fmt.Sprintf(format, args...) + "\n")
}

// failed reports the claim that is not so, over as many lines as it takes.
func (n *narrator) failed(text string) {
	n.write("\n" + n.paint(bad, "✗ "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")) + "\n")
}

// wait shows that something is awaited, until the returned function is called.
func (n *narrator) wait(what string) (done func()) {
	quit := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		if n.terminal {
			n.spin(what, quit)
		} else {
			n.remind(what, quit)
		}
	})
	return sync.OnceFunc(func() {
		close(quit)
		ended.Wait()
		n.write("")
	})
}

func (n *narrator) spin(what string, quit <-chan struct{}) {
	ticker := time.NewTicker(spinEvery)
	defer ticker.Stop()
	begun := n.now()
	for frame := 0; ; frame++ {
		n.mu.Lock()
		n.erase()
		line := fmt.Sprintf("   %c waiting for %s, %d s", spinner[frame%len(spinner)], what, int(n.now().Sub(begun).Seconds()))
		fmt.Fprint(n.out, n.paint(faint, line))
		n.waiting = true
		n.mu.Unlock()
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
	}
}

func (n *narrator) remind(what string, quit <-chan struct{}) {
	begun, next := n.now(), patience
	for {
		timer := time.NewTimer(next)
		select {
		case <-quit:
			timer.Stop()
			return
		case <-timer.C:
			n.write(fmt.Sprintf("   … waiting for %s, %d s\n", what, int(n.now().Sub(begun).Seconds())))
			next = remindEvery
		}
	}
}

// summary lists how long each step took.
func (n *narrator) summary() {
	n.mu.Lock()
	steps, end := n.steps, n.now()
	n.mu.Unlock()
	if len(steps) == 0 {
		return
	}
	n.write("\n" + n.paint(strong, "━━ Times") + "\n")
	width := 0
	for _, s := range steps {
		width = max(width, utf8.RuneCountInString(s.title))
	}
	for i, s := range steps {
		until := end
		if i+1 < len(steps) {
			until = steps[i+1].begun
		}
		n.write(fmt.Sprintf("   %2d. %-*s %6.1f s\n", i+1, width, s.title, until.Sub(s.begun).Seconds()))
	}
	n.write(fmt.Sprintf("       %-*s %6.1f s\n", width, "in all", end.Sub(steps[0].begun).Seconds()))
}
