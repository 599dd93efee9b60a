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
	// ca verifies the API server's certificate.
	ca                                  []byte
	admin, controllerManager, scheduler user
}

func newCredentials(dir string) (*credentials, error) {
	c := &credentials{
		dir:               dir,
		admin:             newUser("admin", "system:masters"),
		controllerManager: newUser("system:kube-controller-manager", ""),
		scheduler:         newUser("system:kube-scheduler", ""),
	}
	for _, write := range []func() error{c.writeTokens, c.writeServingCertificate, c.writeServiceAccountKey} {
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
	for _, u := range []user{c.admin, c.controllerManager, c.scheduler} {
		fmt.Fprintf(&lines, "%s,%s,%s", u.token, u.name, u.name)
		if u.group != "" {
			fmt.Fprintf(&lines, ",%s", u.group)
		}
		lines.WriteByte('\n')
	}
	return c.write("tokens.csv", []byte(lines.String()))
}

func (c *credentials) writeServingCertificate() error {
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP(loopback)},
		[]string{"kubernetes.default.svc"})
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

// config is how u reaches the API server on port.
func (c *credentials) config(u user, port int) *rest.Config {
	return &rest.Config{
		Host:            "https://" + address(port),
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
