// Package filelock is a lock between processes. The kernel drops it with its
// holder, however that one ends, so a crash never leaves it behind.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// retryEvery is how often Acquire asks for a held lock.
const retryEvery = 100 * time.Millisecond

// ErrHeld is returned by Try when another holder has the lock.
var ErrHeld = errors.New("held by another process")

// errRemoved says that a locked file has lost its name, so that the lock on it
// excludes nobody.
var errRemoved = errors.New("the lock file was removed")

// Lock is a held lock; Release gives it up.
type Lock struct{ file *os.File }

// Try takes the lock at path, creating the file and its directory as needed.
// The text is what Holder tells others while it is held. If it is taken, the
// error is ErrHeld.
func Try(path, text string) (*Lock, error) {
	for {
		lock, err := try(path, text)
		// A former holder removed the file between our opening and locking it.
		if !errors.Is(err, errRemoved) {
			return lock, err
		}
	}
}

func try(path, text string) (*Lock, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if errors.Is(err, fs.ErrExist) {
		// It was there for mkdir, and not for the look at it that follows.
		return nil, errRemoved
	}
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRemoved
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(file, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// What a former holder wrote stays in the file until here.
	if err := errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintf("%s (process %d)", text, os.Getpid()))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Lock{file: file}, nil
}

func lockFile(file *os.File, path string) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	mine, err := file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, named) {
		return errRemoved
	}
	return err
}

// Acquire takes the lock as Try does, and waits while it is held. Before it
// waits it calls waiting, if that is not nil, once with the holder's text.
func Acquire(ctx context.Context, path, text string, waiting func(holder string)) (*Lock, error) {
	lock, err := Try(path, text)
	if !errors.Is(err, ErrHeld) {
		return lock, err
	}
	if waiting != nil {
		waiting(Holder(path))
	}
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s, held by %s: %w", path, Holder(path), context.Cause(ctx))
		case <-ticker.C:
		}
		if lock, err = Try(path, text); !errors.Is(err, ErrHeld) {
			return lock, err
		}
	}
}

// Holder is the text of whoever holds the lock at path, for messages; only
// Try tells whether it is held.
func Holder(path string) string {
	data, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(data)); err == nil && text != "" {
		return text
	}
	return "another process"
}

// Release gives the lock up. The file stays.
func (l *Lock) Release() error { return l.release(false) }

// Remove gives the lock up and removes its file, and the directory of the file
// if that is empty then. From here on another may hold it.
func (l *Lock) Remove() error { return l.release(true) }

func (l *Lock) release(remove bool) error {
	if l == nil || l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	var err error
	if remove {
		err = os.Remove(file.Name())
		// Fails if there is something else, such as the next holder's file.
		_ = os.Remove(filepath.Dir(file.Name()))
	}
	return errors.Join(err, file.Close())
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}
