package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// recordSuffix ends the name of the files that Reap looks for.
const recordSuffix = ".pid"

// reapWithin is how long Reap waits for a killed process to be gone.
const reapWithin = 10 * time.Second

// record identifies a process beyond its pid: pids are reused, a pid with the
// same start time is not.
type record struct {
	PID int `json:"pid"`
	// Started is the start time as the system tells it, comparable only with
	// another answer of the same system.
	Started string `json:"started"`
}

// writeRecord notes the process pid in dir under name, so that a later Reap of
// dir can end it.
func writeRecord(dir, name string, pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("start time of process %d: %w", pid, err)
	}
	data, err := json.Marshal(record{PID: pid, Started: started})
	if err != nil {
		return err
	}
	// A rename, so that Reap never meets half a record.
	path := filepath.Join(dir, name+recordSuffix)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func removeRecord(dir, name string) error {
	err := os.Remove(filepath.Join(dir, name+recordSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// RecordSelf notes the calling process in dir under name; see Find and Reap.
func RecordSelf(dir, name string) error { return writeRecord(dir, name, os.Getpid()) }

// Find returns the pid of the process recorded in dir under name, or 0 if there
// is no record or its process is gone. Another process that has been given the
// same pid since does not count.
func Find(dir, name string) (int, error) {
	r, err := readRecord(filepath.Join(dir, name+recordSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !r.alive() {
		return 0, nil
	}
	return r.PID, nil
}

// Reap kills each process that is still running of those recorded in dir,
// removes the records, and returns the names of the killed. It waits until they
// are gone. A dir that does not exist holds nothing.
func Reap(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+recordSuffix))
	if err != nil {
		return nil, err
	}
	var killed []string
	var errs []error
	for _, path := range paths {
		r, err := readRecord(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		was, err := r.kill()
		if err != nil {
			errs = append(errs, fmt.Errorf("left running by an earlier run: %w", err))
			continue
		}
		if was {
			killed = append(killed, strings.TrimSuffix(filepath.Base(path), recordSuffix))
		}
		errs = append(errs, os.Remove(path))
	}
	return killed, errors.Join(errs...)
}

func readRecord(path string) (record, error) {
	var r record
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is not a process record, remove it: %w", path, err)
	}
	if r.PID <= 1 {
		return r, fmt.Errorf("%s is not a process record, remove it: pid %d", path, r.PID)
	}
	return r, nil
}

// alive reports whether the recorded process, and not a later one with its
// pid, still runs.
func (r record) alive() bool {
	started, err := startTime(r.PID)
	return err == nil && started == r.Started
}

// kill ends the recorded process and reports whether there was one.
func (r record) kill() (bool, error) {
	// A record of the caller itself is of no earlier run.
	if r.PID == os.Getpid() || !r.alive() {
		return false, nil
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, fmt.Errorf("process %d: %w", r.PID, err)
	}
	deadline := time.NewTimer(reapWithin)
	defer deadline.Stop()
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for r.alive() {
		select {
		case <-deadline.C:
			return true, fmt.Errorf("process %d still runs %s after SIGKILL", r.PID, reapWithin)
		case <-ticker.C:
		}
	}
	return true, nil
}
