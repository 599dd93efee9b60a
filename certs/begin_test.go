package certs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// trustsBefore makes all webhooks trust the CA of whoever issued certificates before.
func (o *office) trustsBefore() string {
	o.Helper()
	bundle := issued(o.T, now).bundle()
	validating, err := o.Validating.Get(o.Context(), "operator", metav1.GetOptions{})
	require.NoError(o, err)
	mutating, err := o.Mutating.Get(o.Context(), "operator", metav1.GetOptions{})
	require.NoError(o, err)
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = bundle
	}
	mutating.Webhooks[0].ClientConfig.CABundle = bundle
	_, err = o.Validating.Update(o.Context(), validating, metav1.UpdateOptions{})
	require.NoError(o, err)
	_, err = o.Mutating.Update(o.Context(), mutating, metav1.UpdateOptions{})
	require.NoError(o, err)
	o.writes()
	return string(bundle)
}

// begin runs Begin on a replica that has something to serve with when the Secret holds it.
// What it gives waits for its end, and gives the failures that it has told of.
func (o *office) begin() (ended func() []string) {
	o.Helper()
	var told []string
	logger := funcr.New(func(_, line string) {
		if strings.Contains(line, `"error"=`) {
			told = append(told, line)
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(log.IntoContext(o.Context(), logger))
	lacking := func() bool { return len(o.secret().Data[CertFile]) == 0 }
	done := make(chan error, 1)
	go func() { done <- o.Begin(ctx, lacking) }()
	require.Eventually(o, o.clock.HasWaiters, 10*time.Second, time.Millisecond)
	o.Cleanup(cancel)
	return func() []string {
		o.Helper()
		require.Eventually(o, func() bool {
			o.clock.Step(beginAfter)
			select {
			case err := <-done:
				return assert.NoError(o, err)
			default:
				return false
			}
		}, 10*time.Second, time.Millisecond)
		return told
	}
}

func TestAReplicaThatLacksACertificateIssuesTheFirstOneBesideThoseOfBefore(t *testing.T) {
	o := newOffice(t, emptySecret())
	before := o.trustsBefore()

	o.begin()()

	m := readMaterial(o.secret().Data)
	require.NotNil(t, m.leaf)
	both := string(m.bundle()) + before
	assert.Equal(t, []string{both, both, both}, o.bundles(), "others serve with what was issued before")

	require.NoError(t, o.Keep(t.Context()))
	assert.Equal(t, m, o.inOrder(), "as the leader it trusts its own alone")
}

func TestAReplicaLeavesItToTheLeaderAtFirst(t *testing.T) {
	o := newOffice(t, emptySecret())
	ended := o.begin()
	o.clock.Step(beginAfter - time.Second)
	require.NoError(t, o.Keep(t.Context()), "this is the leader")
	first := o.inOrder()
	o.writes()

	ended()

	assert.Empty(t, o.writes())
	assert.Equal(t, first, o.inOrder())
}

func TestOnlyAReplicaThatIsSecondIsSilentAboutIt(t *testing.T) {
	secrets := corev1.Resource("secrets")
	for name, tc := range map[string]struct {
		resource string
		err      error
		told     int
	}{
		"another has filled the Secret":   {"secrets", apierrors.NewConflict(secrets, "cert", errors.New("it has changed")), 0},
		"another has made it":             {"secrets", apierrors.NewAlreadyExists(secrets, "cert"), 0},
		"it may not write it":             {"secrets", apierrors.NewForbidden(secrets, "cert", errors.New("no")), 1},
		"another has told the API server": {"mutatingwebhookconfigurations", apierrors.NewConflict(secrets, "operator", errors.New("it has changed")), 0},
		"it may not tell the API server":  {"mutatingwebhookconfigurations", apierrors.NewForbidden(secrets, "operator", errors.New("no")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, emptySecret())
			attempts := 0
			o.cluster.PrependReactor("update", tc.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				attempts++
				return attempts == 1, nil, tc.err
			})

			told := o.begin()()

			assert.Len(t, told, tc.told)
			assert.Equal(t, 2, attempts, "it is tried again")
			o.inOrder()
		})
	}
}
