// Command pause holds namespaces open and collects the processes that their
// parents have left behind: the first process of a node, and of each of its pods.
package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for {
		reap()
		if <-signals != syscall.SIGCHLD {
			return
		}
	}
}

// reap collects all children that have ended. One signal may stand for many.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
