//go:build unix && !linux

package process

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// errGone is the answer of startTime for a process that has ended.
var errGone = errors.New("no such process")

// childAttr puts a child into a process group of its own, so that Ctrl-C at the
// terminal reaches only the starter, which then stops its children in order.
// Only Linux kills a child with its parent; elsewhere Reap does, at the next run.
func childAttr(isolated bool) (*syscall.SysProcAttr, error) {
	if isolated {
		return nil, errors.New("only Linux isolates a program")
	}
	return &syscall.SysProcAttr{Setpgid: true}, nil
}

func startOnLivingThread(cmd *exec.Cmd) error { return cmd.Start() }

// startTime is the start time of a process as ps prints it. A zombie counts as gone.
func startTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:noctx // a number; ps answers at once
	if err != nil {
		return "", errGone
	}
	state, started, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !found || strings.HasPrefix(state, "Z") {
		return "", errGone
	}
	return strings.TrimSpace(started), nil
}
