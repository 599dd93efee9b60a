package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lookEvery is how often a claim is looked at while it is awaited.
const lookEvery = 100 * time.Millisecond

// failure is a claim of the demo that is not so.
type failure struct{ expected, seen string }

// Error says both sides.
func (f *failure) Error() string {
	return "expected: " + f.expected + "\nseen:     " + f.seen
}

// await looks until the claim is so, that is, look returns nil, and says how long
// that took. An error of look says what is there instead; if it is a *failure,
// the claim has become impossible and the wait ends.
func (d *demo) await(ctx context.Context, within time.Duration, claim string, look func(context.Context) error) (time.Duration, error) {
	defer d.tell.wait(claim)()
	begun := time.Now()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		seen := look(ctx)
		if seen == nil {
			return time.Since(begun), nil
		}
		if err := errors.Join(context.Cause(ctx), d.env.health(), d.record.problem()); err != nil {
			return 0, err
		}
		var impossible *failure
		if errors.As(seen, &impossible) {
			return 0, seen
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-deadline.C:
			return 0, &failure{expected: fmt.Sprintf("%s, within %s", claim, within), seen: seen.Error()}
		case <-ticker.C:
		}
	}
}

// hold watches that a claim stays so until enough says that this was long enough.
// within bounds the wait for enough.
func (d *demo) hold(ctx context.Context, within time.Duration, claim string, still func() error, enough func(context.Context) error) (time.Duration, error) {
	return d.await(ctx, within, claim, func(ctx context.Context) error {
		if err := still(); err != nil {
			return &failure{expected: claim, seen: err.Error()}
		}
		return enough(ctx)
	})
}
