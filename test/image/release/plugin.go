package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// plugin is the program of kubectl autoscaler, and begins the names of its archives.
const plugin = "kubectl-autoscaler"

// pluginPlatforms are those of the people who type.
var pluginPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// downloads is where the files of a release are said to be; who publishes it elsewhere
// changes the manifest.
const downloads = "https://git.example.com/platform/autoscale-operator/releases/download/"

// krewFile is the plugin's manifest for krew.
const krewFile = "autoscaler.yaml"

// plugins makes an archive of the plugin for each platform, and the manifest of krew.
func (r *release) plugins(ctx context.Context) error {
	var archives []krewPlatform
	for _, platform := range pluginPlatforms {
		archive, err := r.plugin(ctx, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		archives = append(archives, archive)
	}
	manifest, err := yaml.Marshal(r.krew(archives))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, krewFile), manifest, 0o644)
}

// plugin builds the program with the settings of the operator's own, and packs it with
// the license.
func (r *release) plugin(ctx context.Context, platform string) (krewPlatform, error) {
	system, architecture, _ := strings.Cut(platform, "/")
	program := plugin
	if system == "windows" {
		program += ".exe"
	}
	scratch, err := os.MkdirTemp("", plugin+"-")
	if err != nil {
		return krewPlatform{}, err
	}
	defer os.RemoveAll(scratch)
	path := filepath.Join(scratch, program)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+r.version, "-o", path, "./cmd/"+plugin)
	command.Dir = r.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GODEBUG=", "GOWORK=off")
	if said, err := command.CombinedOutput(); err != nil {
		return krewPlatform{}, fmt.Errorf("go build: %w\n%s", err, said)
	}
	packed, err := r.pack(map[string]string{program: path, "LICENSE": filepath.Join(r.root, "LICENSE")}, program, "LICENSE")
	if err != nil {
		return krewPlatform{}, err
	}
	name := plugin + "_" + r.version + "_" + underscored(platform) + ".tar.gz"
	sum := sha256.Sum256(packed)
	return newKrewPlatform(system, architecture, downloads+r.version+"/"+name, hex.EncodeToString(sum[:]), program), os.WriteFile(filepath.Join(r.dir, name), packed, 0o644)
}

// pack makes an archive of files, in an order, with the time of the release.
func (r *release) pack(files map[string]string, order ...string) ([]byte, error) {
	var all bytes.Buffer
	zipped := gzip.NewWriter(&all)
	out := tar.NewWriter(zipped)
	for _, name := range order {
		content, err := os.ReadFile(files[name])
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if strings.HasPrefix(name, plugin) {
			mode = 0o755
		}
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg, ModTime: r.source.made}
		if err := out.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := out.Write(content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(out.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return all.Bytes(), nil
}

// krewPlatform is a platform of krew's manifest (krew.googlecontainertools.github.com/v1alpha2).
type krewPlatform struct {
	Selector struct {
		MatchLabels struct {
			OS   string `json:"os"`
			Arch string `json:"arch"`
		} `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

func newKrewPlatform(system, architecture, uri, sum, bin string) krewPlatform {
	p := krewPlatform{URI: uri, SHA256: sum, Bin: bin}
	p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch = system, architecture
	return p
}

// krew is the manifest: kubectl krew install --manifest=autoscaler.yaml.
func (r *release) krew(platforms []krewPlatform) map[string]any {
	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "autoscaler"},
		"spec": map[string]any{
			"version":          r.version,
			"homepage":         strings.TrimSuffix(downloads, "/releases/download/"),
			"shortDescription": "Validate, replay, explain and audit autoscaling",
			"description": `What the autoscale-operator knows, on the command line: whether manifests would be
admitted, what a policy would have done with recorded load, why an AutoScaler does
what it does and what comes next, and who has the replica count of each Deployment.
`,
			"platforms": platforms,
		},
	}
}
