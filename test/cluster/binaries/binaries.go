// Package binaries builds the programs of a cluster from the Go modules that
// test/tools pins, and keeps them in a cache that all checkouts of one user
// share. The first build takes minutes and says so; later ones find the result.
package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Tool is a program that can be built, named as its executable.
type Tool string

// The programs. The first four are a control plane, KubeScheduler and Kwok add
// pods that become ready without a kubelet; Kubelet, KubeProxy and CoreDNS are the
// part of a real node that is not of the machine. CertManager is its controllers and
// its CA injector. Helm3 and Helm4 are the helm command,
// whose versions differ in how they apply a release.
const (
	Etcd                  Tool = "etcd"
	KubeAPIServer         Tool = "kube-apiserver"
	KubeControllerManager Tool = "kube-controller-manager"
	Kubectl               Tool = "kubectl"
	KubeScheduler         Tool = "kube-scheduler"
	Kwok                  Tool = "kwok"
	Kubelet               Tool = "kubelet"
	KubeProxy             Tool = "kube-proxy"
	CoreDNS               Tool = "coredns"
	CertManager           Tool = "certmanager"
	Prometheus            Tool = "prometheus"
	Promtool              Tool = "promtool"
	Helm3                 Tool = "helm3"
	Helm4                 Tool = "helm4"
)

// CacheEnv names the environment variable that moves the cache to another folder.
const CacheEnv = "AUTOSCALE_OPERATOR_CACHE"

// modulePath is how the checkout's root is recognized.
const modulePath = "example.com/platform/autoscale-operator"

// recipe says how one program is built.
type recipe struct {
	// module is the folder below test/tools whose go.mod pins the program.
	module string
	// versionOf is the module path of that go.mod whose version names the cache
	// folder and is what flags gets.
	versionOf string
	// pkg is the main package; ownPackage if the module consists of it.
	pkg string
	// flags are the build flags; they are part of the cache key.
	flags func(version string) []string
	// minutes is what the build takes at worst: empty caches, two cores, the
	// programs before it in the order of the constants already built.
	minutes int
}

// ownPackage stands for a main package of ours, in the module's root folder.
const ownPackage = "."

var recipes = map[Tool]recipe{
	Etcd:                  {"kubernetes", "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", kubernetesFlags, 1},
	KubeAPIServer:         {"kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", kubernetesFlags, 8},
	KubeControllerManager: {"kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", kubernetesFlags, 4},
	Kubectl:               {"kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kubectl", kubernetesFlags, 1},
	KubeScheduler:         {"kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", kubernetesFlags, 1},
	Kubelet:               {"kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kubelet", kubernetesFlags, 2},
	KubeProxy:             {"kubernetes", "k8s.io/kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", kubernetesFlags, 1},
	CoreDNS:               {"coredns", "github.com/coredns/coredns", ownPackage, staticFlags, 2},
	CertManager:           {"certmanager", "github.com/cert-manager/cert-manager", ownPackage, strippedFlags, 3},
	Kwok:                  {"kwok", "sigs.k8s.io/kwok", "sigs.k8s.io/kwok/cmd/kwok", strippedFlags, 5},
	Prometheus:            {"prometheus", "github.com/prometheus/prometheus", "github.com/prometheus/prometheus/cmd/prometheus", prometheusFlags, 7},
	Promtool:              {"prometheus", "github.com/prometheus/prometheus", "github.com/prometheus/prometheus/cmd/promtool", prometheusFlags, 3},
	Helm3:                 {"helm3", "helm.sh/helm/v3", "helm.sh/helm/v3/cmd/helm", helmFlags("v3"), 5},
	Helm4:                 {"helm4", "helm.sh/helm/v4", "helm.sh/helm/v4/cmd/helm", helmFlags("v4"), 5},
}

// kubernetesFlags stamp the version: without it discovery answers
// v0.0.0-master+$Format:%H$ and checks of a chart's kubeVersion fail.
func kubernetesFlags(version string) []string {
	const pkg = "k8s.io/component-base/version"
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	stamps := []string{"-s", "-w", "-X " + pkg + ".gitVersion=" + version, "-X " + pkg + ".gitTreeState=clean"}
	if len(parts) > 1 {
		stamps = append(stamps, "-X "+pkg+".gitMajor="+parts[0], "-X "+pkg+".gitMinor="+parts[1])
	}
	return []string{"-ldflags=" + strings.Join(stamps, " ")}
}

func strippedFlags(string) []string { return []string{"-ldflags=-s -w"} }

// staticFlags make a program that runs in an image without a loader and libraries.
func staticFlags(string) []string { return []string{"-tags=netgo,osusergo", "-ldflags=-s -w"} }

// prometheusFlags leave the service discoveries out, but for that of pods: a third of
// the packages goes. The program is static, as it runs in an image, too.
func prometheusFlags(version string) []string {
	return []string{
		"-tags=remove_all_sd,enable_kubernetes_sd,netgo,osusergo",
		"-ldflags=-s -w -X github.com/prometheus/common/version.Version=" + strings.TrimPrefix(version, "v"),
	}
}

// helmFlags stamp the version that helm compares plugins and charts with.
func helmFlags(major string) func(string) []string {
	return func(version string) []string {
		return []string{"-ldflags=-s -w -X helm.sh/helm/" + major + "/internal/version.version=" + version}
	}
}

// Set is a set of built programs.
type Set map[Tool]string

// Path is the executable of a tool that the set was made for; asking for
// another one is a mistake of the caller and panics.
func (s Set) Path(tool Tool) string {
	path, ok := s[tool]
	if !ok {
		panic(fmt.Sprintf("binaries: %s was not asked for", tool))
	}
	return path
}

// Build returns the named programs, building those that the cache lacks.
// Progress goes to out (nil discards it); nothing is written when all of them
// are there. Builds of several processes wait for each other. A build that
// fails or is canceled keeps what was finished and leaves nothing half done.
func Build(ctx context.Context, out io.Writer, tools ...Tool) (Set, error) {
	root, err := CheckoutRoot()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if out == nil {
		out = io.Discard
	}
	b := builder{root: root, cache: cache, out: out, recipes: recipes}
	return b.build(ctx, tools)
}

// FromDir returns the named programs of a folder that somebody else filled,
// such as the one that KUBEBUILDER_ASSETS names.
func FromDir(dir string, tools ...Tool) (Set, error) {
	set := Set{}
	for _, tool := range tools {
		path := filepath.Join(dir, string(tool))
		if err := executable(path); err != nil {
			return nil, fmt.Errorf("%s is not in %s: %w", tool, dir, err)
		}
		set[tool] = path
	}
	return set, nil
}

// CacheDir is the folder of everything that checkouts share.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set %s to one): %w", CacheEnv, err)
	}
	return filepath.Join(dir, "autoscale-operator"), nil
}

// CheckoutRoot is the root of the checkout that the working directory lies in.
func CheckoutRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+modulePath+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s", start, modulePath)
		}
	}
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return errors.New("not an executable file")
	}
	return nil
}
