package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"
)

// writeDeadline bounds a write, from its last check to its answer. It is less than
// the time between a leader's giving up and the next one's start (a lease of 15 s,
// renewed within 10 s): no write of an earlier leader is under way when the next one
// confirms an owner.
const writeDeadline = 4 * time.Second

// turnDeadline bounds the other turns, so that one hanging request does not hold up
// all whose Deployments share its lock.
const turnDeadline = 15 * time.Second

// turns lets those who write a Deployment's count, and those who change its owner,
// do so one at a time. So no write of an earlier owner is under way when the next
// one is confirmed. The zero value is ready.
type turns struct {
	once  sync.Once
	locks keymutex.KeyMutex
}

// take waits for the turn and gives what ends it. Deployments may share a lock.
func (t *turns) take(target types.NamespacedName) (done func()) {
	t.once.Do(func() { t.locks = keymutex.NewHashed(1024) })
	key := target.String()
	t.locks.LockKey(key)
	return func() { _ = t.locks.UnlockKey(key) }
}
