package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// errGone is the answer of startTime for a process that has ended.
var errGone = errors.New("no such process")

// childAttr puts a child into a process group of its own, so that Ctrl-C at the
// terminal reaches only the starter, which then stops its children in order;
// and lets the kernel kill it when the starter dies.
func childAttr(isolated bool) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if isolated {
		attr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	}
	return attr, nil
}

// launcher is the thread that starts all children. The kernel sends Pdeathsig
// when the *thread* that forked ends, not the process, and the Go runtime ends
// threads as it likes. A goroutine that is locked to its thread and never
// returns keeps the thread for the life of the process.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func startOnLivingThread(cmd *exec.Cmd) error {
	result := make(chan error)
	launcher() <- func() { result <- cmd.Start() }
	return <-result
}

// startTime is the start time of a process in clock ticks since boot, with the
// boot's identity. A zombie counts as gone: it runs no more, and who should
// collect it is not ours to say.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", errGone
	}
	if err != nil {
		return "", err
	}
	// proc(5): the second field is the command in parentheses and may hold
	// spaces and parentheses itself; the state is the field after it, and the
	// start time the 22nd.
	const state, started = 0, 22 - 3
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) <= started {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the command", pid, len(fields))
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", errGone
	}
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	return boot + "/" + fields[started], nil
}

// bootID tells boots apart: after a reboot both pid and ticks may repeat.
var bootID = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
})
