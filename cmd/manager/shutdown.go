package main

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// outlive gives a context that ends a while after stopping has. Meanwhile the process
// has left, and does its work: the API server goes on asking it until the Service's
// endpoints have reached every node, and an admission that finds nobody is refused.
// The leader keeps its lease so long, and releases it when its evaluations have ended.
func outlive(stopping context.Context, clk clock.Clock, delay time.Duration, leave func()) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(stopping))
	context.AfterFunc(stopping, func() {
		leave()
		if delay > 0 {
			ctrl.Log.Info("not ready any more, and serving until the Service has forgotten this replica", "delay", delay)
			<-clk.After(delay)
		}
		cancel()
	})
	return ctx
}
