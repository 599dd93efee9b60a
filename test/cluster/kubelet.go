package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Kubelet prepares the control plane for one node with a kubelet and real
// containers, which somebody else runs (see test/node): the API server listens
// where the node and its pods reach it, and knows the kubelet and kube-proxy.
type Kubelet struct {
	// Node is the name under which the kubelet registers.
	Node string
	// Address is the address of this machine on which the API server listens, in
	// place of loopback. The API server reaches pods by their addresses, not
	// through Services, so this machine needs a route to them.
	Address netip.Addr
	// Services is the range of addresses of Services.
	Services netip.Prefix
}

// Files in the cluster's directory that a kubelet and a kube-proxy are given.
const (
	kubeletKubeconfigName = "kubelet.kubeconfig"
	proxyKubeconfigName   = "kube-proxy.kubeconfig"
	kubeletClientName     = "kubelet-client"
)

// KubeletKubeconfig is the path of the kubelet's kubeconfig; it is there if
// Options.Kubelet is set, as are the next two.
func (c *Cluster) KubeletKubeconfig() string { return c.path(kubeletKubeconfigName) }

// ProxyKubeconfig is the path of kube-proxy's kubeconfig.
func (c *Cluster) ProxyKubeconfig() string { return c.path(proxyKubeconfigName) }

// KubeletClientCA is the path of the certificate by which the kubelet knows the
// API server.
func (c *Cluster) KubeletClientCA() string { return c.path(kubeletClientName + ".crt") }

func (k *Kubelet) validate() error {
	if k.Node == "" || !k.Address.Is4() || k.Address.IsLoopback() || !k.Services.IsValid() {
		return fmt.Errorf("cluster.Options.Kubelet is %+v: Node, Services and an IPv4 address other than loopback are needed", *k)
	}
	return nil
}

// service is the address of the Service "kubernetes", the first of the range.
func (k *Kubelet) service() netip.Addr { return k.Services.Masked().Addr().Next() }

// addresses are those that the API server's certificate must name.
func (k *Kubelet) addresses() []net.IP {
	return []net.IP{k.Address.AsSlice(), k.service().AsSlice()}
}

// apiServerFlags are what makes the API server differ from one without nodes.
func (s *starter) apiServerFlags() []string {
	k := s.options.Kubelet
	if k == nil {
		return []string{
			"--bind-address=" + loopback,
			"--advertise-address=" + advertised,
			"--endpoint-reconciler-type=none",
			"--authorization-mode=RBAC",
			"--service-cluster-ip-range=10.0.0.0/24",
		}
	}
	return []string{
		"--bind-address=" + k.Address.String(),
		"--advertise-address=" + k.Address.String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + k.Services.String(),
		// Webhooks are called at the addresses of their pods: no kube-proxy serves
		// this side of the node.
		"--enable-aggregator-routing=true",
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + s.credentials.path(kubeletClientName+".crt"),
		"--kubelet-client-key=" + s.credentials.path(kubeletClientName+".key"),
	}
}

// writeKubeletFiles writes what the node's components need to reach the API server.
func (s *starter) writeKubeletFiles() error {
	return errors.Join(
		writeKubeconfig(s.path(kubeletKubeconfigName), "kubelet", s.config(s.credentials.kubelet)),
		writeKubeconfig(s.path(proxyKubeconfigName), "kube-proxy", s.config(s.credentials.proxy)),
	)
}

// writeKubeletClient writes the certificate with which the API server comes to
// the kubelet. It is its own authority: the kubelet trusts it alone.
func (c *credentials) writeKubeletClient() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(365 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	chain, err := certutil.EncodeCertificates(parsed)
	if err != nil {
		return err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return errors.Join(c.write(kubeletClientName+".crt", chain), c.write(kubeletClientName+".key", pem))
}
