// Package controller carries decisions out: it gathers what a decision needs,
// asks scaling how many, asks binding whether it may, writes the scale and says
// in status and events what it did.
//
// One reconcile is a list of phases, one file each, over an evaluation:
//
//	validate → target → contract → demand → decide → scale → status
//
// No phase waits for a metric: the sampler asks, and its answers wake the AutoScalers
// that need them. A phase adds facts and conditions, or ends the evaluation early;
// status is written once, at the end, and only when it says something new.
package controller
