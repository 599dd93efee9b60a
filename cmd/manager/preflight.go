package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/platform/autoscale-operator/config/crd"
)

// The API server is given that long to answer the first questions: a permission that
// was granted a moment ago, or an API server that restarts, ends no rollout.
const (
	preflightWithin = 15 * time.Second
	preflightEvery  = time.Second
)

// mayStart looks whether the cluster is one that this operator may run in. It ends
// the process before it has done anything: a rolling update stops with the old
// replicas going on.
func (p *process) mayStart(ctx context.Context) error {
	reader := p.mgr.GetAPIReader()
	if err := patiently(ctx, func(ctx context.Context) error { return crd.Check(ctx, reader) }); err != nil {
		return err
	}
	return patiently(ctx, func(ctx context.Context) error { return soleInstall(ctx, reader, p.options) })
}

// patiently asks again while the API server gives no answer. An answer that forbids
// the start is final.
func patiently(ctx context.Context, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, preflightEvery, preflightWithin, true, func(ctx context.Context) (bool, error) {
		err := ask(ctx)
		if forbids(err) {
			return false, err
		}
		// That time is up says less than what the API server said before.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if err != nil {
			ctrl.Log.Info("asking the API server again", "error", err.Error())
		}
		return err == nil, nil
	})
	switch {
	case last == nil || !wait.Interrupted(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("told to end while the API server gave no answer: %w", last)
	}
	return fmt.Errorf("gave up after %s: %w", preflightWithin, last)
}

// forbids says whether an error is an answer that no other will follow.
func forbids(err error) bool {
	var outdated *crd.OutdatedError
	var overlap *overlapError
	return errors.As(err, &outdated) || errors.As(err, &overlap)
}
