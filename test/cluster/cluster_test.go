package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

func TestPorts(t *testing.T) {
	t.Run("are free, in range, and not given to two holders", func(t *testing.T) {
		dir := t.TempDir()
		holders := []*Ports{NewPorts(dir), NewPorts(dir)}
		taken := map[int]bool{}
		for range 50 {
			for _, holder := range holders {
				port, err := holder.Take()
				require.NoError(t, err)
				assert.GreaterOrEqual(t, port, firstPort)
				assert.LessOrEqual(t, port, lastPort)
				assert.True(t, free(port))
				assert.False(t, taken[port], "port %d was given twice", port)
				taken[port] = true
			}
		}
		for _, holder := range holders {
			require.NoError(t, holder.Release())
		}
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		assert.Empty(t, left, "the reservations are gone")
	})

	t.Run("on which something listens are not free", func(t *testing.T) {
		listener, err := net.Listen("tcp", address(0))
		require.NoError(t, err)
		_, text, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		port, err := strconv.Atoi(text)
		require.NoError(t, err)

		assert.False(t, free(port))
		require.NoError(t, listener.Close())
		assert.True(t, free(port))
	})

	t.Run("fail, after a bounded search, when all are reserved by others", func(t *testing.T) {
		dir := t.TempDir()
		others, mine := NewPorts(dir), NewPorts(dir)
		for _, p := range []*Ports{others, mine} {
			p.first, p.last = firstPort, firstPort
		}
		_, err := others.Take()
		require.NoError(t, err)

		_, err = mine.Take()

		assert.ErrorContains(t, err, "none of 200 ports tried between 20000 and 20000 is free")
		require.NoError(t, others.Release())
	})
}

func TestOptionsNameTheToolsThatTheyNeed(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		tools   []binaries.Tool
	}{
		"the API server alone": {Options{}, []binaries.Tool{binaries.Etcd, binaries.KubeAPIServer}},
		"with controllers": {Options{Controllers: true},
			[]binaries.Tool{binaries.Etcd, binaries.KubeAPIServer, binaries.KubeControllerManager}},
		"nodes imply controllers": {Options{Nodes: &Nodes{Count: 1}},
			[]binaries.Tool{binaries.Etcd, binaries.KubeAPIServer, binaries.KubeControllerManager, binaries.KubeScheduler, binaries.Kwok}},
		"so does a kubelet": {Options{Kubelet: &Kubelet{}},
			[]binaries.Tool{binaries.Etcd, binaries.KubeAPIServer, binaries.KubeControllerManager, binaries.KubeScheduler}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.tools, c.options.Tools())
		})
	}
}

func TestStartRefusesOptionsThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		says    string
	}{
		"no directory":     {Options{}, "Options.Dir is empty"},
		"no nodes":         {Options{Dir: "d", Nodes: &Nodes{}}, "Count must be 1 or more"},
		"a negative delay": {Options{Dir: "d", Nodes: &Nodes{Count: 1, ReadyDelay: -time.Second}}, "ReadyDelay not negative"},
		"a kubelet that nobody reaches": {Options{Dir: "d", Kubelet: &Kubelet{
			Node: "n", Address: netip.MustParseAddr(loopback), Services: netip.MustParsePrefix("198.19.1.128/25"),
		}}, "an IPv4 address other than loopback"},
		"pods for two kinds of nodes": {Options{Dir: "d", Nodes: &Nodes{Count: 1}, Kubelet: kubeletOptions()}, "both Nodes and Kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), c.options)

			assert.ErrorContains(t, err, c.says)
		})
	}
}

func kubeletOptions() *Kubelet {
	return &Kubelet{
		Node: "node-1", Address: netip.MustParseAddr("198.18.1.1"), Services: netip.MustParsePrefix("198.19.1.128/25"),
	}
}

func TestCredentialsOfAControlPlaneWithAKubelet(t *testing.T) {
	dir := t.TempDir()
	c, err := newCredentials(dir, kubeletOptions())
	require.NoError(t, err)

	t.Run("know the node and its proxy", func(t *testing.T) {
		tokens, err := os.ReadFile(c.path("tokens.csv"))
		require.NoError(t, err)
		assert.Contains(t, string(tokens), c.kubelet.token+",system:node:node-1,system:node:node-1,system:nodes\n")
		assert.Contains(t, string(tokens), c.proxy.token+",system:kube-proxy,system:kube-proxy\n")
	})

	t.Run("name the API server as nodes and pods call it", func(t *testing.T) {
		certs, err := certutil.CertsFromFile(c.path("apiserver.crt"))
		require.NoError(t, err)
		for _, name := range []string{"198.18.1.1", "198.19.1.129", "kubernetes.default.svc"} {
			assert.NoError(t, certs[0].VerifyHostname(name))
		}
	})

	t.Run("show the API server to the kubelet, which trusts nobody else", func(t *testing.T) {
		certs, err := certutil.CertsFromFile(c.path("kubelet-client.crt"))
		require.NoError(t, err)
		pool, err := certutil.NewPool(c.path("kubelet-client.crt"))
		require.NoError(t, err)
		_, err = certs[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		assert.NoError(t, err)
		_, err = tls.LoadX509KeyPair(c.path("kubelet-client.crt"), c.path("kubelet-client.key"))
		assert.NoError(t, err)
	})
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	c, err := newCredentials(dir, nil)
	require.NoError(t, err)

	t.Run("know an administrator and the components by their tokens", func(t *testing.T) {
		file, err := os.Open(c.path("tokens.csv"))
		require.NoError(t, err)
		defer func() { assert.NoError(t, file.Close()) }()
		reader := csv.NewReader(file)
		reader.FieldsPerRecord = -1
		rows, err := reader.ReadAll()
		require.NoError(t, err)
		assert.Equal(t, [][]string{
			{c.admin.token, "admin", "admin", "system:masters"},
			{c.controllerManager.token, "system:kube-controller-manager", "system:kube-controller-manager"},
			{c.scheduler.token, "system:kube-scheduler", "system:kube-scheduler"},
		}, rows)
		assert.NotEqual(t, c.admin.token, c.scheduler.token)
	})

	t.Run("are for their owner's eyes", func(t *testing.T) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.NotEmpty(t, entries)
		for _, entry := range entries {
			info, err := entry.Info()
			require.NoError(t, err)
			assert.Zero(t, info.Mode()&0o077, entry.Name())
		}
	})

	t.Run("survive the way through a kubeconfig", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		want := c.config(c.admin, address(20001))
		require.NoError(t, writeKubeconfig(path, "test", want))

		got, err := clientcmd.BuildConfigFromFlags("", path)

		require.NoError(t, err)
		assert.Equal(t, "https://127.0.0.1:20001", got.Host)
		assert.Equal(t, want.BearerToken, got.BearerToken)
		assert.Equal(t, want.CAData, got.CAData)
	})
}

func TestStagesAreYAMLOnceTheDelayIsSet(t *testing.T) {
	require.Equal(t, 1, strings.Count(stages, ": READY_DELAY_MILLISECONDS"))
	text := strings.ReplaceAll(stages, ": READY_DELAY_MILLISECONDS", ": 1500")
	delays := map[string]float64{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var stage struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Delay struct{ DurationMilliseconds float64 }
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &stage))
		assert.Equal(t, "Stage", stage.Kind)
		delays[stage.Metadata.Name] = stage.Spec.Delay.DurationMilliseconds
	}
	assert.Equal(t, map[string]float64{"node-initialize": 0, "pod-ready": 1500, "pod-delete": 0}, delays)
}

func TestDownWithoutAClusterDoesNothing(t *testing.T) {
	ran, err := Down(t.Context(), filepath.Join(t.TempDir(), "absent"))

	require.NoError(t, err)
	assert.False(t, ran)
}

// A slip in a path must not cost anybody their files.
func TestADirectoryWithOtherThingsInItIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.txt")
	require.NoError(t, os.WriteFile(precious, []byte("years"), 0o600))

	_, err := Start(t.Context(), Options{Dir: dir, Binaries: binaries.Set{}})
	require.ErrorContains(t, err, "not a cluster's directory: it holds thesis.txt")
	_, err = Down(t.Context(), dir)
	require.ErrorContains(t, err, "not a cluster's directory")

	assert.FileExists(t, precious)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing was added either")
}

func TestClaimRemovesWhatAnEarlierClusterLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	first, err := claim(dir)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, kubeconfigName), nil, 0o600))
	assert.True(t, held(dir))
	_, err = claim(dir)
	require.ErrorIs(t, err, ErrInUse)
	assert.DirExists(t, filepath.Join(dir, "etcd"), "what is in use is untouched")
	require.NoError(t, first.Release())
	assert.False(t, held(dir))

	second, err := claim(dir)

	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	assert.ElementsMatch(t, []string{lockName, ownerName + ".pid"}, names)
	require.NoError(t, second.Release())
}
