package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/test/image"
)

// billTool lists the modules of a program as CycloneDX; test/tools/image pins it.
const billTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"

// bills writes the bill of materials of the program of each platform: the modules that
// are compiled into it, with their sums and licenses, and the Go standard library.
func (r *release) bills(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "bill-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	// It is built and then run, as it is to run here with another platform's settings.
	// -trimpath: a bill bears the sum of the tool that wrote it.
	tool := filepath.Join(scratch, "cyclonedx-gomod")
	if err := r.command(ctx, nil, "go", "build", "-trimpath", "-buildvcs=false", "-modfile=test/tools/image/go.mod", "-o", tool, billTool); err != nil {
		return err
	}
	for _, platform := range platforms {
		output := r.named(underscored(platform) + ".cdx.json")
		system, architecture, _ := strings.Cut(platform, "/")
		err := r.command(ctx, []string{"GOOS=" + system, "GOARCH=" + architecture, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly"},
			tool, "app", "-json", "-std", "-licenses", "-noserial", "-main="+image.Operator[0], "-output="+output, r.root)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(output)
		if err != nil {
			return err
		}
		if content, err = r.settled(content); err != nil {
			return fmt.Errorf("%s: %w", output, err)
		}
		if err := os.WriteFile(output, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// settled is a bill with the version and the time of the release: the tool guesses
// the one from git, and takes the moment for the other.
func (r *release) settled(content []byte) ([]byte, error) {
	var bill map[string]any
	if err := json.Unmarshal(content, &bill); err != nil {
		return nil, err
	}
	metadata, _ := bill["metadata"].(map[string]any)
	component, _ := metadata["component"].(map[string]any)
	name, _ := component["name"].(string)
	if name == "" {
		return nil, errors.New("it does not name the program")
	}
	guessed, _ := component["version"].(string)
	component["version"] = r.version
	metadata["timestamp"] = r.source.made.Format(time.RFC3339)
	settled, err := json.MarshalIndent(bill, "", "  ")
	if err != nil {
		return nil, err
	}
	// What refers to the program does so by name and version.
	return bytes.ReplaceAll(settled, []byte(name+"@"+guessed), []byte(name+"@"+r.version)), nil
}

// command runs a program in the checkout.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = r.root
	command.Env = append(append(os.Environ(), "GOWORK=off"), env...)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, said)
	}
	return nil
}
