package prometheus

import "time"

// Observer is told of what the sampler does, in order. Its methods are called
// under the sampler's lock, so they must be quick and not call the sampler. All
// labels are bounded: endpoints are those of the configuration, profiles those of
// the cluster, reasons those of reasons.go.
type Observer interface {
	// Asked is called after each exchange. reason is empty where there was an
	// answer, whatever it says, and why there was none otherwise.
	Asked(profile, endpoint, reason string, took time.Duration)
	// Delayed is called when a question is asked that has had to wait for more than a
	// second for a budget, the profile's or the endpoint's.
	Delayed(profile, endpoint string)
	// Forgotten is called when the last question of a profile has ended. Nothing
	// else is said of the profile after it, unless a new question begins.
	Forgotten(profile string)
}
