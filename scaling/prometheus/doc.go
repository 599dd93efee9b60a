// Package prometheus measures demand: it asks a Prometheus-compatible server
// for one number and says how far that number can be trusted.
//
// A query either yields a valid [scaling.Sample] or one with an enumerated
// reason (reasons.go). It never returns an error, because a policy treats every
// failure alike: it is missing knowledge, not zero load. Addresses and
// credentials come from the operator's configuration only ([Endpoint]); they
// never appear in a sample's message, which ordinary users can read.
//
// The two result types that hold one number are accepted: a vector of exactly
// one sample, and a scalar. PromQL's scalar() of anything but one series is
// NaN, which is refused like every other NaN, so accepting scalars does not
// hide missing or surplus series.
package prometheus
