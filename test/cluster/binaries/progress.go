package binaries

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// redrawEvery is how often a terminal's line is written anew.
	redrawEvery = time.Second
	// reportEvery is how often anything else gets a line.
	reportEvery = 15 * time.Second
	// quotedLines is how much of the go command's messages an error quotes.
	quotedLines = 25
)

// progress reads what `go build -v` says (one line per compiled package) and
// reports it: on a terminal in one line that is written over, elsewhere in a
// line every now and then.
type progress struct {
	out      io.Writer
	title    string
	terminal bool
	begun    time.Time
	quit     chan struct{}
	quitted  sync.WaitGroup
	once     sync.Once

	mu       sync.Mutex
	rest     string   // an unfinished line
	messages []string // lines that are not packages
	fetched  int
	compiled int
	packages int // 0 while sources are being fetched
}

func startProgress(out io.Writer, title string) *progress {
	p := &progress{out: out, title: title, terminal: isTerminal(out), begun: time.Now(), quit: make(chan struct{})}
	every := reportEvery
	if p.terminal {
		every = redrawEvery
	}
	p.quitted.Go(func() { p.report(every) })
	return p
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) report(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
			p.print(p.state())
		}
	}
}

func (p *progress) print(text string) {
	before, after := "  ", "\n"
	if p.terminal {
		// Back to the line's start, and clear it.
		before, after = "\r\x1b[K  ", ""
	}
	fmt.Fprint(p.out, before, p.title, ": ", text, ", ", time.Since(p.begun).Round(time.Second), after)
}

func (p *progress) state() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.packages == 0 {
		return fmt.Sprintf("fetching sources, %d modules so far", p.fetched)
	}
	return fmt.Sprintf("%d of at most %d packages compiled", p.compiled, p.packages)
}

// compiling says that the sources are there; at most so many packages follow,
// fewer where the compiler's cache has some.
func (p *progress) compiling(packages int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packages = packages
}

// finished reports the end of a build that succeeded.
func (p *progress) finished() {
	p.stop()
	p.mu.Lock()
	compiled := p.compiled
	p.mu.Unlock()
	p.print(fmt.Sprintf("built, %d packages compiled", compiled))
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}

// stop ends the reports.
func (p *progress) stop() {
	p.once.Do(func() { close(p.quit) })
	p.quitted.Wait()
}

// Write takes the go command's messages.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.rest+string(data), "\n")
	p.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			p.fetched++
		case line != "" && !strings.ContainsAny(line, " \t:#"):
			p.compiled++
		default:
			p.messages = append(p.messages, line)
		}
	}
	if extra := len(p.messages) - quotedLines; extra > 0 {
		p.messages = p.messages[extra:]
	}
	return len(data), nil
}

// quote is the end of the messages, indented.
func (p *progress) quote() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := p.messages
	if p.rest != "" {
		lines = append(lines[:len(lines):len(lines)], p.rest)
	}
	return "  | " + strings.Join(lines, "\n  | ")
}
