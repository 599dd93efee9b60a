package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// cgroups is where the kernel shows them: one hierarchy, or a folder with one for
// each controller.
const cgroups = "/sys/fs/cgroup"

// cgroupGoneWithin bounds the wait for a cgroup whose last process has just ended.
const cgroupGoneWithin = 10 * time.Second

// cgroup is the one below which the kubelet makes those of the pods, in every
// hierarchy.
type cgroup struct{ name string }

// create makes the cgroup: the kubelet wants to find it.
func (c cgroup) create() error {
	roots, err := hierarchies()
	for _, root := range roots {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, c.name), 0o755))
	}
	return err
}

// hierarchies are the roots of the mounted hierarchies.
func hierarchies() ([]string, error) {
	// With a single hierarchy its controllers are named in its root.
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}, nil
	}
	// cgroup.procs is in every cgroup, and in nothing else.
	paths, err := filepath.Glob(filepath.Join(cgroups, "*", "cgroup.procs"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no cgroups are mounted below %s", cgroups)
	}
	roots := make([]string, 0, len(paths))
	for _, path := range paths {
		roots = append(roots, filepath.Dir(path))
	}
	return roots, err
}

// remove removes the cgroup and all below it, and waits until their processes have
// been forgotten.
func (c cgroup) remove(ctx context.Context) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cgroupGoneWithin)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		var last error
		for _, root := range roots {
			last = errors.Join(last, removeCgroups(filepath.Join(root, c.name)))
		}
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cgroups that are still in use: %w", last)
		case <-ticker.C:
		}
	}
}

// removeCgroups removes a cgroup, those below it first. Its files go with it, and
// cannot be removed one by one.
func removeCgroups(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeCgroups(filepath.Join(path, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
