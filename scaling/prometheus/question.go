package prometheus

import "time"

const (
	// DefaultTimeout is the deadline of a question that sets none.
	DefaultTimeout = 5 * time.Second
	// MaxClockSkew is how far a sample may lie ahead of the operator's clock.
	// Synchronized clocks differ by much less.
	MaxClockSkew = 5 * time.Second
	// DefaultMaxSeries bounds the series of an answer for many targets.
	DefaultMaxSeries = 10_000
)

// Question is one query to one endpoint. Equal questions have equal answers, so
// that one exchange serves all who ask.
type Question struct {
	// Profile is the name of the MetricProfile that the question is from: whose
	// budget it takes from, and a label of metrics.
	Profile string
	// Endpoint is the name of a configured endpoint.
	Endpoint string
	// Expr is the rendered PromQL expression, see Render.
	Expr string
	// Timeout is the deadline of the whole exchange, the body included. The
	// server is told of it. 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxResponseBytes bounds the body of the answer. 0 leaves it to the
	// endpoint; a limit that the endpoint sets is never exceeded.
	MaxResponseBytes int64
	// MaxSeries bounds the series of an answer for many targets. 0 is
	// DefaultMaxSeries.
	MaxSeries int
	// Series says whom the series of the answer are for. The zero value asks
	// for one series: the answer is for whoever asks.
	Series SeriesLabels
	// EveryAnswer wakes all who ask at each answer, also those with a longer interval:
	// what they see beside it (replicas that are Ready) has to be of the same time.
	EveryAnswer bool
	// OnEmptyZero takes an answer without a series (of the target) as 0.
	OnEmptyZero bool
	// BudgetPerMinute bounds the queries per minute of all questions of the
	// profile together. 0 is no limit.
	BudgetPerMinute int
}

// SeriesLabels are the names of the labels that say for which Deployment a
// series is.
type SeriesLabels struct {
	Namespace, Target string
}

func (l SeriesLabels) single() bool { return l == SeriesLabels{} }

func (q *Question) timeout() time.Duration {
	if q.Timeout <= 0 {
		return DefaultTimeout
	}
	return q.Timeout
}

func (q *Question) maxSeries() int {
	if q.MaxSeries <= 0 {
		return DefaultMaxSeries
	}
	return q.MaxSeries
}

// Measure is all that one metric of one AutoScaler needs to know. It is
// comparable.
type Measure struct {
	// Load asks for the load: the total, that per replica, or the backlog.
	Load Question
	// Arrivals asks for the items per second that join a backlog. An empty Expr
	// asks nothing.
	Arrivals Question
	// Freshness asks whether what Load rests on is fresh.
	Freshness Freshness
	// Namespace and Target pick the series from answers for many targets.
	Namespace, Target string
	// MaxAge is the age from which on a sample is stale. 0 is no limit.
	MaxAge time.Duration
}

// Freshness is a question about the source of a measure, and the bound that its
// answer must keep: exactly one of MaxAge and MinHealthyShare. An empty Expr
// asks nothing. That the question has OnEmptyZero means nothing: no answer is
// no freshness.
type Freshness struct {
	Question
	// MaxAge is the longest age, in the answer's unit of seconds. 0 leaves it to
	// MinHealthyShare.
	MaxAge time.Duration
	// MinHealthyShare is the least share of healthy targets, 0 to 1.
	MinHealthyShare float64
}
