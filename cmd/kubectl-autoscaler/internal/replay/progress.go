package replay

import (
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// progress is a bar on a terminal, for outputs that are not printed there as they come.
type progress struct {
	w     io.Writer // nil: none
	done  func(at time.Time) float64
	steps int
	shown int
}

// stepsPerLook is how many steps there are between two looks at how far it is.
const stepsPerLook = 4096

const barWidth = 40

func newProgress(streams cli.Streams, output string, done func(time.Time) float64) *progress {
	streaming := output == "table" || output == "csv" || output == "json"
	if !cli.Terminal(streams.Err) || streaming && cli.Terminal(streams.Out) {
		return &progress{}
	}
	return &progress{w: streams.Err, done: done, shown: -1}
}

func (p *progress) step(at time.Time) {
	p.steps++
	if p.w == nil || p.steps%stepsPerLook != 0 {
		return
	}
	percent := int(100 * max(0, min(p.done(at), 1)))
	if percent == p.shown {
		return
	}
	p.shown = percent
	bar := strings.Repeat("=", barWidth*percent/100)
	fmt.Fprintf(p.w, "\r[%-*s] %3d%%  %s", barWidth, bar, percent, at.UTC().Format("2006-01-02"))
}

// end takes the bar away.
func (p *progress) end() {
	if p.w != nil && p.shown >= 0 {
		fmt.Fprintf(p.w, "\r%*s\r", barWidth+20, "")
	}
}
