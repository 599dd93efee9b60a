package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parentDir, when set in the environment, makes the test binary a parent that
// starts one child in that directory and then waits to be killed.
const parentDir = "PROCESS_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		p, err := Start(context.Background(), sleeper(dir, "child"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		<-p.Done()
		return
	}
	os.Exit(m.Run())
}

// sleeper is a program that runs until it is told to end.
func sleeper(dir, name string) Spec {
	return shell(dir, name, "exec sleep 600")
}

func shell(dir, name, script string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir}
}

func gone(pid int) func() bool {
	return func() bool {
		_, err := startTime(pid)
		return errors.Is(err, errGone)
	}
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 10*time.Second, 10*time.Millisecond, what)
}

func TestAChildDiesWithAParentThatIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills a child with its parent")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentDir+"="+t.TempDir())
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	_, err = startTime(child)
	require.NoError(t, err, "the child runs while its parent does")

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()

	eventually(t, gone(child), "the child outlived its parent")
}

func TestStart(t *testing.T) {
	t.Run("waits until the probe succeeds", func(t *testing.T) {
		dir := t.TempDir()
		ready := filepath.Join(dir, "ready")
		spec := shell(dir, "slow", "echo working; touch "+ready+"; exec sleep 600")
		probes := 0
		spec.Ready = func(context.Context) error {
			probes++
			_, err := os.Stat(ready)
			return err
		}

		p, err := Start(t.Context(), spec)

		require.NoError(t, err)
		assert.FileExists(t, ready)
		assert.Positive(t, probes)
		assert.NoError(t, p.Err(), "a running program has no error")
		require.NoError(t, p.Stop())
	})

	t.Run("fails at once, with the log, when the program ends by itself", func(t *testing.T) {
		spec := shell(t.TempDir(), "broken", "echo unknown flag >&2; exit 3")
		spec.Ready = func(context.Context) error { return errors.New("refused") }

		_, err := Start(t.Context(), spec)

		require.Error(t, err)
		assert.ErrorContains(t, err, "broken")
		assert.ErrorContains(t, err, "exit status 3")
		assert.ErrorContains(t, err, "unknown flag")
	})

	t.Run("names the last probe's answer when time is up, and leaves nothing running", func(t *testing.T) {
		dir := t.TempDir()
		spec := sleeper(dir, "never")
		spec.ReadyWithin = 200 * time.Millisecond
		var pid int
		spec.Ready = func(context.Context) error {
			var err error
			pid, err = Find(dir, "never")
			return errors.Join(err, errors.New("still loading"))
		}

		_, err := Start(t.Context(), spec)

		assert.ErrorContains(t, err, "not ready within 200ms")
		assert.ErrorContains(t, err, "still loading")
		require.NotZero(t, pid, "the probe saw the running program's record")
		assert.True(t, gone(pid)())
		assert.NoFileExists(t, filepath.Join(dir, "never.pid"))
	})

	t.Run("stops waiting when the context is canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		spec := sleeper(t.TempDir(), "canceled")
		spec.Ready = func(context.Context) error {
			cancel()
			return errors.New("not yet")
		}

		_, err := Start(ctx, spec)

		assert.ErrorIs(t, err, context.Canceled)
	})

	t.Run("names a program that does not exist", func(t *testing.T) {
		_, err := Start(t.Context(), Spec{Name: "absent", Path: "/nonexistent/program", Dir: t.TempDir()})

		assert.ErrorIs(t, err, os.ErrNotExist)
		assert.ErrorContains(t, err, "absent")
	})
}

func TestStop(t *testing.T) {
	t.Run("kills a program that ignores SIGTERM", func(t *testing.T) {
		dir := t.TempDir()
		trapped := filepath.Join(dir, "trapped")
		spec := shell(dir, "stubborn", "trap '' TERM; touch "+trapped+"; while :; do sleep 600; done")
		spec.StopWithin = 100 * time.Millisecond
		spec.Ready = func(context.Context) error { _, err := os.Stat(trapped); return err }
		p, err := Start(t.Context(), spec)
		require.NoError(t, err)

		require.NoError(t, p.Stop())

		assert.True(t, gone(p.PID())())
		assert.ErrorContains(t, p.Err(), "killed")
	})

	t.Run("may be called again, and after the program's own end", func(t *testing.T) {
		p, err := Start(t.Context(), shell(t.TempDir(), "brief", "exit 0"))
		require.NoError(t, err)
		<-p.Done()

		require.NoError(t, p.Stop())
		require.NoError(t, p.Stop())
		assert.ErrorContains(t, p.Err(), "status 0")
	})
}

func TestReap(t *testing.T) {
	t.Run("kills what an earlier run left behind, and says what", func(t *testing.T) {
		dir := t.TempDir()
		p, err := Start(t.Context(), sleeper(dir, "left"))
		require.NoError(t, err)

		killed, err := Reap(dir)

		require.NoError(t, err)
		assert.Equal(t, []string{"left"}, killed)
		assert.True(t, gone(p.PID())())
		again, err := Reap(dir)
		require.NoError(t, err)
		assert.Empty(t, again, "the record is gone too")
	})

	t.Run("spares a process that was given the recorded pid later", func(t *testing.T) {
		other, err := Start(t.Context(), sleeper(t.TempDir(), "other"))
		require.NoError(t, err)
		defer func() { assert.NoError(t, other.Stop()) }()
		dir := t.TempDir()
		stale := fmt.Sprintf(`{"pid":%d,"started":"an earlier time"}`, other.PID())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stale.pid"), []byte(stale), 0o600))

		found, err := Find(dir, "stale")
		require.NoError(t, err)
		assert.Zero(t, found)
		killed, err := Reap(dir)

		require.NoError(t, err)
		assert.Empty(t, killed)
		assert.NoError(t, syscall.Kill(other.PID(), 0), "the other process was harmed")
		assert.NoFileExists(t, filepath.Join(dir, "stale.pid"))
	})

	for name, content := range map[string]string{
		"refuses to signal every process of the user": `{"pid":-1,"started":""}`,
		"refuses a record cut short":                  `{"pid":12`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.pid"), []byte(content), 0o600))

			_, err := Reap(dir)

			assert.ErrorContains(t, err, "bad.pid is not a process record")
		})
	}

	t.Run("finds nothing in a directory that does not exist", func(t *testing.T) {
		killed, err := Reap(filepath.Join(t.TempDir(), "absent"))

		require.NoError(t, err)
		assert.Empty(t, killed)
	})
}

func TestRecordSelfIsFoundWhileTheProcessRuns(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, RecordSelf(dir, "self"))

	pid, err := Find(dir, "self")

	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), pid)
}
