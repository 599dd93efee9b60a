package cluster

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// user is a client of the API server that is known by a token from its start.
type user struct {
	name  string
	group string
	token string
}

// credentials are everything secret of a cluster, fresh for each start. The
// files lie in a directory that only its owner can read.
type credentials struct {
	dir string
	// serving are the addresses that the API server's certificate names.
	serving []net.IP
	// ca verifies the API server's certificate.
	ca                                  []byte
	admin, controllerManager, scheduler user
	// kubelet and proxy are the node's; without one they have no name.
	kubelet, proxy user
}

func newCredentials(dir string, kubelet *Kubelet) (*credentials, error) {
	c := &credentials{
		dir:               dir,
		serving:           []net.IP{net.ParseIP(loopback)},
		admin:             newUser("admin", "system:masters"),
		controllerManager: newUser("system:kube-controller-manager", ""),
		scheduler:         newUser("system:kube-scheduler", ""),
	}
	writes := []func() error{c.writeTokens, c.writeServingCertificate, c.writeServiceAccountKey}
	if kubelet != nil {
		c.serving = kubelet.addresses()
		c.kubelet = newUser("system:node:"+kubelet.Node, "system:nodes")
		c.proxy = newUser("system:kube-proxy", "")
		writes = append(writes, c.writeKubeletClient)
	}
	for _, write := range writes {
		if err := write(); err != nil {
			return nil, fmt.Errorf("credentials of the cluster: %w", err)
		}
	}
	return c, nil
}

func newUser(name, group string) user { return user{name: name, group: group, token: rand.Text()} }

func (c *credentials) path(name string) string { return filepath.Join(c.dir, name) }

func (c *credentials) write(name string, data []byte) error {
	return os.WriteFile(c.path(name), data, 0o600)
}

// writeTokens writes the file of --token-auth-file: token, name, UID, groups.
func (c *credentials) writeTokens() error {
	var lines strings.Builder
	for _, u := range []user{c.admin, c.controllerManager, c.scheduler, c.kubelet, c.proxy} {
		if u.name == "" {
			continue
		}
		fmt.Fprintf(&lines, "%s,%s,%s", u.token, u.name, u.name)
		if u.group != "" {
			fmt.Fprintf(&lines, ",%s", u.group)
		}
		lines.WriteByte('\n')
	}
	return c.write("tokens.csv", []byte(lines.String()))
}

func (c *credentials) writeServingCertificate() error {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", c.serving,
		[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"})
	if err != nil {
		return err
	}
	c.ca = cert
	if err := c.write("apiserver.crt", cert); err != nil {
		return err
	}
	return c.write("apiserver.key", key)
}

// writeServiceAccountKey writes the key that signs the tokens of ServiceAccounts.
func (c *credentials) writeServiceAccountKey() error {
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	return c.write("service-account.key", key)
}

// config is how u reaches the API server, which listens on hostPort.
func (c *credentials) config(u user, hostPort string) *rest.Config {
	return &rest.Config{
		Host:            "https://" + hostPort,
		BearerToken:     u.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca},
		// The API server's own priority and fairness is the only limit.
		QPS: -1,
	}
}

// writeKubeconfig writes config as the only context of a kubeconfig file.
func writeKubeconfig(path, name string, config *rest.Config) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	kubeconfig.CurrentContext = name
	// WriteToFile makes the file for its owner only.
	return clientcmd.WriteToFile(*kubeconfig, path)
}
