package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holderPath, when set in the environment, makes the test binary take the lock
// at that path, say so, and wait to be killed.
const holderPath = "FILELOCK_TEST_HOLDER"

func TestMain(m *testing.M) {
	if path := os.Getenv(holderPath); path != "" {
		if _, err := Try(path, "the holder"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {}
	}
	os.Exit(m.Run())
}

func TestALockExcludesAndNamesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "directory", "lock")
	first, err := Try(path, "make demo")
	require.NoError(t, err)

	_, err = Try(path, "make test")
	require.ErrorIs(t, err, ErrHeld)
	assert.Equal(t, fmt.Sprintf("make demo (process %d)", os.Getpid()), Holder(path))

	require.NoError(t, first.Release())
	second, err := Try(path, "up")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("up (process %d)", os.Getpid()), Holder(path), "nothing of the longer text is left")
	require.NoError(t, second.Release())
	assert.NoError(t, second.Release(), "a second release does nothing")
}

func TestAcquire(t *testing.T) {
	t.Run("waits for the release, after telling once for whom", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "lock")
		first, err := Try(path, "first")
		require.NoError(t, err)
		var told []string

		second, err := Acquire(t.Context(), path, "second", func(holder string) {
			told = append(told, holder)
			require.NoError(t, first.Release())
		})

		require.NoError(t, err)
		require.Len(t, told, 1)
		assert.Contains(t, told[0], "first")
		require.NoError(t, second.Release())
	})

	t.Run("gives up with the context, naming the holder", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "lock")
		first, err := Try(path, "first")
		require.NoError(t, err)
		defer func() { assert.NoError(t, first.Release()) }()
		ctx, cancel := context.WithCancel(t.Context())

		_, err = Acquire(ctx, path, "second", func(string) { cancel() })

		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "first")
	})
}

func TestAKilledHolderLosesTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderPath+"="+path)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	said := make([]byte, len("held"))
	_, err = out.Read(said)
	require.NoError(t, err)
	require.Equal(t, "held", string(said))
	_, err = Try(path, "second")
	require.ErrorIs(t, err, ErrHeld)

	require.NoError(t, holder.Process.Kill())
	_ = holder.Wait()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	lock, err := Acquire(ctx, path, "second", nil)
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

func TestAHolderCanRemoveTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "lock")
	first, err := Try(path, "first")
	require.NoError(t, err)
	unnamed, err := os.Open(path)
	require.NoError(t, err)
	defer func() { assert.NoError(t, unnamed.Close()) }()

	require.NoError(t, first.Remove())
	assert.NoDirExists(t, dir)

	require.ErrorIs(t, lockFile(unnamed, path), errRemoved, "a waiter that opened the file before its removal")
	second, err := Try(path, "second")
	require.NoError(t, err)
	_, err = Try(path, "third")
	require.ErrorIs(t, err, ErrHeld)
	require.NoError(t, second.Release())
}

// Many take, remove and release one lock at once; never do two hold it.
func TestRemovalNeverLetsTwoHoldTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "lock")
	var holders, rounds atomic.Int32
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for rounds.Load() < 200 {
				lock, err := Try(path, "one of many")
				if errors.Is(err, ErrHeld) {
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, int32(1), holders.Add(1))
				rounds.Add(1)
				holders.Add(-1)
				assert.NoError(t, lock.Remove())
			}
		})
	}
	done.Wait()
}
