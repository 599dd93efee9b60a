package kube

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

func TestWithoutAKubeconfigTheErrorSaysSo(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", none)
	f := &Flags{}
	f.Add((&cobra.Command{}).Flags())

	_, err := f.Client()
	require.ErrorContains(t, err, "which cluster is meant: there is no kubeconfig")
	assert.ErrorContains(t, err, "--kubeconfig or KUBECONFIG")
	assert.ErrorContains(t, err, "--context")

	f.overrides.CurrentContext = "x"
	_, err = f.Client()
	require.ErrorContains(t, err, `context "x" does not exist`)

	f.overrides.CurrentContext, f.rules.ExplicitPath = "", none
	_, err = f.Client()
	assert.ErrorContains(t, err, "no such file")
}

// completed gives what the shell would offer, and what it would not see.
func completed(t *testing.T, args ...string) (offered []string, errs string) {
	t.Helper()
	f := &Flags{}
	root := &cobra.Command{Use: "kubectl-autoscaler"}
	look := &cobra.Command{Use: "look", Run: func(*cobra.Command, []string) {}}
	f.AddAll(look.Flags())
	root.AddCommand(look)
	var out, stderr bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&stderr)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd, "look"}, args...))
	require.NoError(t, root.ExecuteContext(t.Context()))
	all := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, ":4", all[len(all)-1], "no file is offered")
	return all[:len(all)-1], strings.Replace(stderr.String(), "Completion ended with directive: ShellCompDirectiveNoFileComp\n", "", 1)
}

func TestTheShellIsToldWhatThereIs(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := map[string]string{
			"/api":               `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis":              `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
			"/api/v1":            `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","kind":"Namespace","verbs":["list"]}]}`,
			"/api/v1/namespaces": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"default"}},{"metadata":{"name":"production"}}]}`,
		}[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	defer cluster.Close()
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte(strings.ReplaceAll(`apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "URL"}}, {name: away, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: jane, user: {}}]
contexts: [{name: b, context: {cluster: away, user: jane}}, {name: a, context: {cluster: here, user: jane}}]
current-context: a
`, "URL", cluster.URL)), 0o600))
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, filepath.Join(t.TempDir(), "none"))
	here := []string{"--kubeconfig", config}

	for name, tc := range map[string]struct{ args, want []string }{
		"contexts":                    {append(here, "--context", ""), []string{"a", "b"}},
		"clusters":                    {append(here, "--cluster", ""), []string{"away", "here"}},
		"users":                       {append(here, "--user", ""), []string{"jane"}},
		"namespaces":                  {append(here, "--namespace", ""), []string{"default", "production"}},
		"namespaces, by its letter":   {append(here, "-n", ""), []string{"default", "production"}},
		"namespaces that are away":    {append(here, "--context", "b", "-n", ""), []string{}},
		"contexts of no kubeconfig":   {[]string{"--context", ""}, []string{}},
		"namespaces of no kubeconfig": {[]string{"-n", ""}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			offered, errs := completed(t, tc.args...)
			assert.Equal(t, tc.want, offered)
			assert.Empty(t, errs)
			assert.Less(t, time.Since(began), 2*completeWithin)
		})
	}
}
