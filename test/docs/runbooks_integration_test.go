//go:build integration

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/docs/script"
)

var (
	// placeholders stand for what an alert's labels say.
	placeholders = strings.NewReplacer("NAMESPACE", namespace, "TARGET", service, "NAME", service, "PROFILE", profile)
	// filter is what follows a command; where nothing is wrong it finds nothing.
	filter = regexp.MustCompile(`(\s*\\\n)?\s+\|.*`)
	// continued is the end of a line that the next one goes on with.
	continued = regexp.MustCompile(`\s*\\\n\s*`)
)

// installed is what the runbooks look at beside what config/ installs.
const installed = `
kubectl wait crd --for=condition=Established --timeout=30s --all
helm template autoscale-operator charts/autoscale-operator --namespace autoscale-operator-system \
  --set 'config.endpoints[0].name=main,config.endpoints[0].url=http://prometheus.monitoring:9090' \
  --show-only templates/configmap.yaml --show-only templates/certificates.yaml | kubectl apply -f -
kubectl -n autoscale-operator-system create secret generic autoscale-operator-serving-cert --from-literal=tls.crt=
`

// runbooks types each command of each runbook, as on call would in a cluster where
// everything is in order: none is misspelled, and none asks for what is not there.
func (w *world) runbooks() {
	w.Helper()
	w.sweep()
	w.manage()
	w.holds()
	certManager, err := binaries.SourceDir(w.Context(), binaries.CertManager)
	require.NoError(w, err)
	_, err = w.desk.Type(w.Context(), "kubectl apply --server-side -f "+filepath.Join(certManager, "deploy", "crds")+installed)
	require.NoError(w, err)
	books, err := filepath.Glob(page("runbooks/*"))
	require.NoError(w, err)
	require.NotEmpty(w, books)
	for _, book := range books {
		w.Run(strings.TrimSuffix(filepath.Base(book), ".md"), func(t *testing.T) { w.at(t).types(book) })
	}
}

// types enters the commands of a runbook, one by one.
func (w *world) types(book string) {
	w.Helper()
	text, err := os.ReadFile(book)
	require.NoError(w, err)
	assert.NotContains(w, string(text), "\n    kubectl", "what is only shown is not typed")
	blocks, err := script.Read(book)
	require.NoError(w, err)
	for _, b := range blocks {
		if b.Language != script.Shell {
			continue
		}
		assert.Empty(w, b.Flags, "%s:%d: every command is typed", book, b.Line)
		commands := continued.ReplaceAllString(filter.ReplaceAllString(placeholders.Replace(b.Text), ""), " ")
		for command := range strings.Lines(commands) {
			_, err := w.desk.Type(w.Context(), command)
			assert.NoError(w, err, "%s:%d: %s", book, b.Line, command)
		}
	}
}
