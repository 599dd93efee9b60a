package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/test/image"
)

// release is one run.
type release struct {
	// root is the checkout's.
	root string
	// dir gets the files.
	dir     string
	version string
	source  source
	out     io.Writer
}

// source is what the files are made from.
type source struct {
	// revision is the commit, with -dirty behind it if files differ from it.
	revision string
	// made is the time that everything bears: the commit's, or SOURCE_DATE_EPOCH.
	made time.Time
}

// epoch is the time as SOURCE_DATE_EPOCH.
func (s source) epoch() string { return strconv.FormatInt(s.made.Unix(), 10) }

func readSource(ctx context.Context, root string) (source, error) {
	revision, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return source{}, err
	}
	changed, err := git(ctx, root, "--no-optional-locks", "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	if changed != "" {
		revision += "-dirty"
	}
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		if text, err = git(ctx, root, "log", "-1", "--format=%ct"); err != nil {
			return source{}, err
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return source{revision: revision, made: time.Unix(seconds, 0).UTC()}, nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = root
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(output)), nil
}

// write makes all files. The sums come last, as they are of all others.
func (r *release) write(ctx context.Context) error {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"the image and the programs for " + strings.Join(platforms, " and "), r.images},
		{"what the programs are made of", r.bills},
		{"the plugin for " + strings.Join(pluginPlatforms, ", "), r.plugins},
		{"the chart", r.chart},
		{"the manifests", r.manifests},
		{"the notes", r.notes},
		{"the sums", r.sums},
	} {
		fmt.Fprintln(r.out, "release:", step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// named is the path of a file with this ending.
func (r *release) named(ending string) string {
	return filepath.Join(r.dir, product+"_"+r.version+"_"+ending)
}

// underscored is a platform in the name of a file.
func underscored(platform string) string { return strings.ReplaceAll(platform, "/", "_") }

// images makes the image, and takes the programs out of it: what runs in a cluster and
// what is downloaded are the same.
func (r *release) images(ctx context.Context) error {
	archive := r.named("image.tar")
	err := image.Build(ctx, image.Options{
		Binaries: image.Operator, Name: product, Tag: r.version, Platforms: platforms, Output: archive,
		Labels: map[string]string{
			"org.opencontainers.image.created":     r.source.made.Format(time.RFC3339),
			"org.opencontainers.image.revision":    r.source.revision,
			"org.opencontainers.image.description": "Decides who may set the replica count of a Deployment, and scales it by Prometheus metrics.",
			"org.opencontainers.image.licenses":    "Apache-2.0",
		},
		Env: []string{"SOURCE_DATE_EPOCH=" + r.source.epoch()}, Progress: r.out,
	})
	if err != nil {
		return err
	}
	made, err := image.Read(archive)
	if err != nil {
		return err
	}
	for _, i := range made {
		program := i.Files[strings.TrimPrefix(i.Config.Config.Entrypoint[0], "/")]
		if err := os.WriteFile(r.named(underscored(i.Platform)), program.Content, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// manifests joins what is installed without the chart: kinds and guard.
func (r *release) manifests(context.Context) error {
	kinds, err := filepath.Glob(filepath.Join(r.root, "config", "crd", "*.yaml"))
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return errors.New("config/crd holds no kinds")
	}
	slices.Sort(kinds)
	guard := filepath.Join(r.root, "config", "guard")
	for ending, files := range map[string][]string{
		"crds.yaml":          kinds,
		"guard.yaml":         {filepath.Join(guard, "policies.yaml")},
		"guard-denying.yaml": {filepath.Join(guard, "policies-denying.yaml")},
	} {
		if err := join(r.named(ending), files); err != nil {
			return err
		}
	}
	return nil
}

// join writes YAML documents of several files into one.
func join(output string, files []string) error {
	var all bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if all.Len() > 0 && !bytes.HasPrefix(content, []byte("---")) {
			all.WriteString("---\n")
		}
		all.Write(content)
	}
	return os.WriteFile(output, all.Bytes(), 0o644)
}
