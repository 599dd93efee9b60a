package prometheus

import "time"

// answer is what one exchange brought: points, or the reason why there are
// none. It never changes, and everybody who asked the question reads it.
type answer struct {
	endpoint string
	// asked and arrived are when the exchange began and ended, by the operator's
	// clock.
	asked, arrived time.Time

	// reason and message say why there is no answer. They are empty otherwise.
	reason, message string
	// retryAfter is the wait that the server asks for before the next query.
	retryAfter time.Duration

	// partial says that the server said that something is missing; warning is
	// what it said, if anything.
	partial bool
	warning string

	// count is the number of series. first is the point of a single one.
	count int
	first point
	// targets holds the points of an answer for many.
	targets map[target]point
}

// target is whom a series is for.
type target struct{ namespace, name string }

// point is one series' sample. The time is of the server.
type point struct {
	value float64
	at    time.Time
	kind  pointKind
}

type pointKind uint8

const (
	_ pointKind = iota // a number
	// histogram is a native histogram, which is no number.
	histogram
	// duplicate stands for several points of one target.
	duplicate
)

// nameless reports whether an answer for many has series, but none that says whom
// it is for: labels that were renamed are no load of 0 for everybody.
func (a *answer) nameless() bool { return a.count > 0 && len(a.targets) == 0 }

// failed reports whether there is no answer.
func (a *answer) failed() bool { return a.reason != "" }
