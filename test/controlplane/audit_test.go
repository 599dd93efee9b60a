package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// appendLog adds text to the log.
func appendLog(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

func entry(id, stage, verb string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":%q,"stage":%q,"verb":%q,"user":{"username":"u"}}`+"\n", id, stage, verb)
}

func TestAuditLog(t *testing.T) {
	t.Run("takes half a line only when it is whole", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		l := newAuditLog(path)
		line := entry("1", "ResponseComplete", "get")
		appendLog(t, path, line[:20])
		requests, err := l.settled(t.Context())
		require.NoError(t, err)
		assert.Empty(t, requests)

		appendLog(t, path, line[20:])
		requests, err = l.settled(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []Request{{User: "u", Verb: "get"}}, requests)
	})

	t.Run("waits for a request under way, and not for a watch", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		l := newAuditLog(path)
		appendLog(t, path, entry("w", "RequestReceived", "watch"))
		_, err := l.settled(t.Context())
		require.NoError(t, err)

		appendLog(t, path, entry("1", "RequestReceived", "update"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.settled(ctx)
		require.ErrorIs(t, err, context.Canceled)

		appendLog(t, path, entry("1", "ResponseComplete", "update"))
		requests, err := l.settled(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []Request{{User: "u", Verb: "update"}}, requests)
	})

	t.Run("names a line that is no event", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		appendLog(t, path, "no JSON\n")

		_, err := newAuditLog(path).settled(t.Context())

		assert.ErrorContains(t, err, "no JSON")
	})
}

func TestIsWrite(t *testing.T) {
	for name, c := range map[string]struct {
		request Request
		want    bool
	}{
		"an update of a scale":    {Request{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"}, true},
		"a patch of a status":     {Request{Verb: "patch", Resource: "autoscalers", Subresource: "status"}, true},
		"a refused create":        {Request{Verb: "create", Resource: "events", Code: 403}, true},
		"a dry run":               {Request{Verb: "create", Resource: "autoscalers", DryRun: true}, false},
		"a question about rights": {Request{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}, false},
		"a token":                 {Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, false},
		"a watch":                 {Request{Verb: "watch", Resource: "autoscalers"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, c.request.IsWrite())
		})
	}
}

func TestPolicyFailures(t *testing.T) {
	failures := func(annotations map[string]string) []string {
		return request(auditv1.Event{Annotations: annotations}).PolicyFailures
	}

	assert.Nil(t, failures(map[string]string{"authorization.k8s.io/decision": "allow"}))
	assert.Equal(t, []string{"one: no", "two: never"}, failures(map[string]string{
		policyFailuresAnnotation: `[{"message":"no","policy":"one","binding":"b","expressionIndex":1,"validationActions":["Audit"]},{"message":"never","policy":"two"}]`,
	}))
	assert.Equal(t, []string{"not a list"}, failures(map[string]string{policyFailuresAnnotation: "not a list"}), "what cannot be read is shown as it is")
}
