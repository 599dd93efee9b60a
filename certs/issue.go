package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// caKey is the Secret's key for the private key of the newest CA.
const caKey = "ca.key"

const (
	// A CA outlives many leaves, so that a leaf's renewal needs nobody to learn of
	// another CA.
	caLife        = 10 * 365 * 24 * time.Hour
	caRenewBefore = 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	// A third of its life is left when a leaf is renewed.
	leafRenewBefore = leafLife / 3
	// settle is how long everyone has to learn of a new CA before a leaf is signed by
	// it, if the leaf that is served is good for so long.
	settle = 10 * time.Minute
	// backdated is for clocks that differ.
	backdated = 5 * time.Minute
)

// material is what an Authority keeps.
type material struct {
	// cas that are trusted, the newest first.
	cas []*x509.Certificate
	// caKey belongs to the newest; nil: there is none that does.
	caKey crypto.Signer
	// certPEM and keyPEM are the leaf's.
	certPEM, keyPEM []byte
	leaf            *x509.Certificate // nil: there is none that can be used
}

// readMaterial takes of a Secret what can be used; the rest is as if it were not there.
func readMaterial(data map[string][]byte) material {
	var m material
	m.cas, _ = cert.ParseCertsPEM(data[CAFile])
	if key, err := keyutil.ParsePrivateKeyPEM(data[caKey]); err == nil && len(m.cas) > 0 {
		signer, ok := key.(crypto.Signer)
		if public, compares := m.cas[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool }); ok && compares && public.Equal(signer.Public()) {
			m.caKey = signer
		}
	}
	if pair, err := tls.X509KeyPair(data[CertFile], data[KeyFile]); err == nil {
		m.certPEM, m.keyPEM, m.leaf = data[CertFile], data[KeyFile], pair.Leaf
	}
	return m
}

// next is what is to be kept at this time for a server of these names, and what
// changed, in words. trusted says that the API server has been told of all CAs.
func (m material) next(now time.Time, names []string, trusted bool) (material, []string, error) {
	var changes []string
	before := len(m.cas)
	m.cas = slices.DeleteFunc(slices.Clone(m.cas), func(ca *x509.Certificate) bool { return now.After(ca.NotAfter) })
	if len(m.cas) < before {
		changes = append(changes, "dropped an expired CA")
	}
	if len(m.cas) == 0 || m.caKey == nil || now.After(m.cas[0].NotAfter.Add(-caRenewBefore)) {
		ca, key, err := newCA(now)
		if err != nil {
			return m, nil, err
		}
		m.cas, m.caKey = append([]*x509.Certificate{ca}, m.cas...), key
		changes = append(changes, "made a CA")
	}
	why := m.leafDue(now, names, trusted)
	if why == "" {
		return m, changes, nil
	}
	if err := m.issue(now, names); err != nil {
		return m, nil, err
	}
	return m, append(changes, "issued a certificate, for "+why), nil
}

// leafDue says why another leaf is needed, or "". While a CA is new, or the API server
// does not know it, a leaf that is good for so long is not replaced.
func (m material) leafDue(now time.Time, names []string, trusted bool) string {
	switch {
	case m.leaf == nil:
		return "there was none"
	case now.After(m.leaf.NotAfter):
		return "the one before expired"
	case !slices.ContainsFunc(m.cas, func(ca *x509.Certificate) bool { return m.leaf.CheckSignatureFrom(ca) == nil }):
		return "nobody trusts who signed the one before"
	}
	for _, name := range names {
		if m.leaf.VerifyHostname(name) != nil {
			return name + " was not in the one before"
		}
	}
	settled := trusted && now.Sub(m.cas[0].NotBefore.Add(backdated)) >= settle
	if now.After(m.leaf.NotAfter.Add(-leafRenewBefore)) && (settled || now.After(m.leaf.NotAfter.Add(-settle))) {
		return "it is time"
	}
	return ""
}

// data is what the Secret is to hold.
func (m material) data() (map[string][]byte, error) {
	key, err := keyutil.MarshalPrivateKeyToPEM(m.caKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{CertFile: m.certPEM, KeyFile: m.keyPEM, CAFile: m.bundle(), caKey: key}, nil
}

// bundle is all CAs as PEM.
func (m material) bundle() []byte {
	var all bytes.Buffer
	for _, ca := range m.cas {
		all.Write(pemOf(ca.Raw))
	}
	return all.Bytes()
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

func newCA(now time.Time) (*x509.Certificate, crypto.Signer, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: fmt.Sprintf("autoscale-operator CA of %s", now.UTC().Format(time.DateOnly))},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(caLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	key, der, err := sign(template, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(der)
	return ca, key, err
}

// issue makes a leaf, signed by the newest CA.
func (m *material) issue(now time.Time, names []string) error {
	notAfter := now.Add(leafLife)
	if end := m.cas[0].NotAfter; notAfter.After(end) {
		notAfter = end
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "autoscale-operator"},
		NotBefore: now.Add(-backdated), NotAfter: notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	key, der, err := sign(template, m.cas[0], m.caKey)
	if err != nil {
		return err
	}
	if m.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return err
	}
	m.certPEM = pemOf(der)
	m.leaf, err = x509.ParseCertificate(der)
	return err
}

// sign makes a key and has its certificate signed; without a parent it signs itself.
func sign(template, parent *x509.Certificate, parentKey crypto.Signer) (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	return key, der, err
}
