package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"example.com/platform/autoscale-operator/certs"
)

// serving is the certificate that this replica serves with, for webhooks and metrics.
type serving struct {
	*certs.Serving
	// authority issues it, where the operator does so itself.
	authority *certs.Authority
}

func newServing(config *rest.Config, o *options) (*serving, error) {
	if o.certificates == certificatesProvided {
		files := &certs.Files{Dir: o.webhookCertDir, Origin: origin(o)}
		return &serving{Serving: certs.NewServing(files, clock.RealClock{})}, nil
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	secrets := clientset.CoreV1().Secrets(o.namespace)
	authority := &certs.Authority{
		Secrets: secrets, Secret: o.certSecret, Namespace: o.namespace, Service: o.webhookService,
		Validating:    clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		Mutating:      clientset.AdmissionregistrationV1().MutatingWebhookConfigurations(),
		Configuration: o.webhookConfigurations, Clock: clock.RealClock{},
	}
	source := &certs.Secret{Secrets: secrets, Namespace: o.namespace, Name: o.certSecret, Remember: authority.Remember}
	return &serving{Serving: certs.NewServing(source, clock.RealClock{}), authority: authority}, nil
}

// origin says where the files come from, for whoever waits for them.
func origin(o *options) string {
	if o.certSecret == "" {
		return "whoever installed the operator provides the files"
	}
	return fmt.Sprintf("they come from Secret %[1]s/%[2]s; kubectl -n %[1]s get secret,certificate tells whether it is there, and whether cert-manager's Certificate for it is Ready", o.namespace, o.certSecret)
}

// lacks says that there is nothing to serve with.
func (s *serving) lacks() bool {
	_, err := s.GetCertificate(nil)
	return err != nil
}

// use makes a server serve with the certificate.
func (s *serving) use(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.GetCertificate = s.GetCertificate
}

// firstLoad bounds the first look for the certificate.
const firstLoad = 5 * time.Second

// addServing keeps the certificate up to date on every replica and, where the
// operator issues it, does so on the leader; the first one may come from any replica.
func (p *process) addServing(ctx context.Context) error {
	// At once, for the manager runs what it is given only when all caches are there.
	first, cancel := context.WithTimeout(ctx, firstLoad)
	defer cancel()
	p.serving.Refresh(first)
	if err := p.mgr.Add(everywhere(p.serving.Start)); err != nil {
		return err
	}
	if p.serving.authority != nil {
		begin := func(ctx context.Context) error { return p.serving.authority.Begin(ctx, p.serving.lacks) }
		if err := errors.Join(p.mgr.Add(p.serving.authority), p.mgr.Add(everywhere(begin))); err != nil {
			return err
		}
	}
	return metrics.Registry.Register(p.serving.Serving)
}
