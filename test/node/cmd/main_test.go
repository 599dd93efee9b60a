package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsToBeTypedFitsTheNode(t *testing.T) {
	u := usage{kubeconfig: "/node/kubeconfig", tools: "/node/tools", tag: "v1.2.3", logs: "/node", certManager: true, load: []string{"ctr", "import"}}
	for _, want := range []string{
		"export KUBECONFIG=/node/kubeconfig\n", "export PATH=/node/tools:$PATH", "localhost/autoscale-operator:v1.2.3",
		"\nimage:\n  repository: localhost/autoscale-operator\n", " --values values.yaml --wait\n", "\n    ctr import\n",
		"make e2e KUBECONFIG=/node/kubeconfig LOAD='ctr import'\n", "Logs are in /node,",
	} {
		assert.Contains(t, u.String(), want)
	}
	assert.NotContains(t, u.String(), "certificates:")
	assert.NotContains(t, u.String(), "--set", "which an upgrade with the same values would leave out")

	u.certManager = false

	assert.Contains(t, u.String(), "\ncertificates:\n  mode: self-managed\n")
	assert.NotContains(t, u.String(), "make e2e", "which needs cert-manager")
}

func TestNothingIsStartedForFlagsThatAreWrong(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), nil), "--tag is needed")
	require.ErrorContains(t, run(t.Context(), []string{"--cert-manager=perhaps"}), "invalid boolean value")
}
