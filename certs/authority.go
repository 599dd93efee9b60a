package certs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// keepEvery is the time between two looks of the Authority at what it keeps.
	keepEvery = 10 * time.Second
	// beginAfter is how long a replica that has nothing to serve with leaves it to the
	// leader: one that issues certificates has looked by then.
	beginAfter = 2 * keepEvery
)

// Authority issues the serving certificate where nobody else does: it keeps a CA and a
// certificate in a Secret, and the CA in the two webhook configurations. It runs on
// the leader; all replicas serve with what the Secret holds.
//
// No admission fails when something is renewed. A certificate is followed by one of the
// same CA. A CA is added to those that are trusted and signs nothing before everyone
// has had time to learn of it; the one before is trusted until it expires.
type Authority struct {
	Secrets coreclient.SecretInterface
	// Secret is the name of the Secret in Namespace, where the Service is too.
	Secret, Namespace, Service string

	Validating admissionclient.ValidatingWebhookConfigurationInterface
	Mutating   admissionclient.MutatingWebhookConfigurationInterface
	// Configuration is the name of both.
	Configuration string
	Clock         clock.WithTicker

	// mu is for what follows: a replica that begins may become the leader meanwhile.
	mu sync.Mutex
	// held are the CA and its key, for a Secret that somebody deletes or empties.
	held map[string][]byte
	told string
}

// NeedLeaderElection says that it runs on the leader.
func (*Authority) NeedLeaderElection() bool { return true }

// Start keeps everything until the context ends.
func (a *Authority) Start(ctx context.Context) error {
	ticker := a.Clock.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		a.tell(ctx, a.Keep(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Begin issues the first certificate where no leader does, on whichever replica comes
// first. When the operator has just been told to issue it, the leader is a replica of
// before, which does not, and which goes only when another one is ready; and that one
// needs a certificate. lacking says that this replica has none.
func (a *Authority) Begin(ctx context.Context, lacking func() bool) error {
	ticker := a.Clock.NewTicker(beginAfter)
	defer ticker.Stop()
	for begun := true; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if begun && !lacking() {
			return nil
		}
		err := a.keep(ctx, beside)
		begun = err == nil
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue // another was first: the next look tells what is left to do
		}
		a.tell(ctx, err)
	}
}

// Remember keeps the CA that a replica has read: it may be the leader when somebody has
// deleted the Secret.
func (a *Authority) Remember(data map[string][]byte) {
	if readMaterial(data).caKey == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold(data)
}

func (a *Authority) hold(data map[string][]byte) {
	a.held = map[string][]byte{CAFile: data[CAFile], caKey: data[caKey]}
}

// tell logs the same failure once.
func (a *Authority) tell(ctx context.Context, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil || ctx.Err() != nil:
		a.told = ""
	case a.told != err.Error():
		a.told = err.Error()
		log.FromContext(ctx).Error(err, "the serving certificate cannot be kept up; what is there goes on being served")
	}
}

// Keep brings everything in line, once. What it cannot do it tries again at the next
// look.
func (a *Authority) Keep(ctx context.Context) error { return a.keep(ctx, alone) }

// trusted is what a webhook is to trust: a bundle, and what it trusted before.
type trusted func(bundle, before []byte) []byte

func alone(bundle, _ []byte) []byte { return bundle }

// beside is for as long as others serve with what somebody else has issued.
func beside(bundle, before []byte) []byte {
	if bytes.HasPrefix(before, bundle) {
		return before
	}
	return slices.Concat(bundle, before)
}

func (a *Authority) keep(ctx context.Context, want trusted) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	validating, err := a.Validating.Get(ctx, a.Configuration, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the ValidatingWebhookConfiguration of the serving certificate: %w", err)
	}
	mutating, err := a.Mutating.Get(ctx, a.Configuration, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("the MutatingWebhookConfiguration of the serving certificate: %w", err)
	}
	clients := clientsOf(validating, mutating)
	m, err := a.keepSecret(ctx, &validating.ObjectMeta, clients)
	if err != nil {
		return fmt.Errorf("the Secret of the serving certificate: %w", err)
	}
	trusting := func(before []byte) []byte { return want(m.bundle(), before) }
	if trust(validating.Webhooks, trusting, func(w *admissionv1.ValidatingWebhook) *admissionv1.WebhookClientConfig { return &w.ClientConfig }) {
		if _, err := a.Validating.Update(ctx, validating, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("the CA in the ValidatingWebhookConfiguration: %w", err)
		}
		log.FromContext(ctx).Info("the API server is told of the CA", "validatingWebhookConfiguration", a.Configuration)
	}
	if trust(mutating.Webhooks, trusting, func(w *admissionv1.MutatingWebhook) *admissionv1.WebhookClientConfig { return &w.ClientConfig }) {
		if _, err := a.Mutating.Update(ctx, mutating, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("the CA in the MutatingWebhookConfiguration: %w", err)
		}
		log.FromContext(ctx).Info("the API server is told of the CA", "mutatingWebhookConfiguration", a.Configuration)
	}
	return nil
}

// keepSecret stores what is to be kept, if that has changed, and gives it. A Secret that
// is gone comes back as one of the release that the webhooks are of.
func (a *Authority) keepSecret(ctx context.Context, release *metav1.ObjectMeta, clients []admissionv1.WebhookClientConfig) (material, error) {
	secret, err := a.Secrets.Get(ctx, a.Secret, metav1.GetOptions{})
	gone := apierrors.IsNotFound(err)
	switch {
	case gone:
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: a.Secret, Namespace: a.Namespace, Labels: release.Labels, Annotations: maps.Clone(release.Annotations),
		}, Type: corev1.SecretTypeOpaque}
		// Helm deletes and takes over nothing without these; what else is there is of webhooks.
		maps.DeleteFunc(secret.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, "meta.helm.sh/") })
	case err != nil:
		return material{}, err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	m := readMaterial(secret.Data)
	lost := len(m.cas) == 0 && a.held != nil
	if lost {
		// What the replicas serve stays trusted.
		maps.Copy(secret.Data, a.held)
		m = readMaterial(secret.Data)
	}
	bundle := m.bundle()
	trusted := !slices.ContainsFunc(clients, func(c admissionv1.WebhookClientConfig) bool { return !bytes.Equal(c.CABundle, bundle) })
	m, changes, err := m.next(a.Clock.Now(), a.names(clients), trusted)
	if err != nil {
		return m, err
	}
	if lost {
		changes = append(changes, "put back the CA")
	}
	if len(changes) > 0 {
		kept, err := m.data()
		if err != nil {
			return m, err
		}
		maps.Copy(secret.Data, kept)
		if err := a.store(ctx, secret, gone); err != nil {
			return m, err
		}
		log.FromContext(ctx).Info("the Secret of the serving certificate is written", "secret", a.Secret, "wasGone", gone, "changes", changes)
	}
	a.hold(secret.Data)
	return m, nil
}

func (a *Authority) store(ctx context.Context, secret *corev1.Secret, gone bool) error {
	if gone {
		_, err := a.Secrets.Create(ctx, secret, metav1.CreateOptions{})
		return err
	}
	_, err := a.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
	return err
}

// clientsOf are how the API server is told to reach the webhooks.
func clientsOf(validating *admissionv1.ValidatingWebhookConfiguration, mutating *admissionv1.MutatingWebhookConfiguration) []admissionv1.WebhookClientConfig {
	var all []admissionv1.WebhookClientConfig
	for i := range validating.Webhooks {
		all = append(all, validating.Webhooks[i].ClientConfig)
	}
	for i := range mutating.Webhooks {
		all = append(all, mutating.Webhooks[i].ClientConfig)
	}
	return all
}

// names are those of the Service, and the hosts of webhooks that are reached by URL.
func (a *Authority) names(clients []admissionv1.WebhookClientConfig) []string {
	service := a.Service + "." + a.Namespace + ".svc"
	names := []string{service, service + ".cluster.local"}
	for i := range clients {
		if clients[i].URL == nil {
			continue
		}
		if u, err := url.Parse(*clients[i].URL); err == nil && u.Hostname() != "" && !slices.Contains(names, u.Hostname()) {
			names = append(names, u.Hostname())
		}
	}
	return names
}

// trust puts the CAs into each webhook, and says whether one had others.
func trust[W any](webhooks []W, want func(before []byte) []byte, client func(*W) *admissionv1.WebhookClientConfig) (changed bool) {
	for i := range webhooks {
		c := client(&webhooks[i])
		if bundle := want(c.CABundle); !bytes.Equal(c.CABundle, bundle) {
			c.CABundle = bundle
			changed = true
		}
	}
	return changed
}
