package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// advertised is what the API server tells the cluster as its address. It
// refuses a loopback one, and without the flag it looks for a network, which a
// machine may lack. Nothing here uses it: this is an address for documentation
// (RFC 5737).
const advertised = "192.0.2.1"

// controllers are those of kube-controller-manager that a test or a person may
// miss. Left out are the ones for nodes, volumes and certificates.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"horizontal-pod-autoscaler-controller",
	"job-controller",
	"namespace-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"statefulset-controller",
	"ttl-after-finished-controller",
	"validatingadmissionpolicy-status-controller",
}

//go:embed stages.yaml
var stages string

// starter starts the components of one cluster, each with its predecessors running.
type starter struct {
	options     Options
	credentials *credentials
	ports       *Ports
	etcdPort    int
	apiPort     int
}

func (s *starter) path(name string) string { return filepath.Join(s.options.Dir, name) }

func (s *starter) etcd() (process.Spec, error) {
	peer, err := s.ports.Take()
	if err != nil {
		return process.Spec{}, err
	}
	if s.etcdPort, err = s.ports.Take(); err != nil {
		return process.Spec{}, err
	}
	client := "http://" + address(s.etcdPort)
	return process.Spec{
		Path: s.options.Binaries.Path(binaries.Etcd),
		Args: []string{
			"--data-dir=" + s.path("etcd"),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=http://" + address(peer),
			"--initial-advertise-peer-urls=http://" + address(peer),
			"--initial-cluster=default=http://" + address(peer),
			// The data is not meant to survive anything.
			"--unsafe-no-fsync=true",
			"--log-level=warn",
		},
		Ready: answers(http.DefaultClient, client+"/readyz"),
	}, nil
}

func (s *starter) apiServer() (process.Spec, error) {
	port, err := s.ports.Take()
	if err != nil {
		return process.Spec{}, err
	}
	s.apiPort = port
	args := []string{
		"--etcd-servers=http://" + address(s.etcdPort),
		"--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + s.path("apiserver"),
		"--tls-cert-file=" + s.credentials.path("apiserver.crt"),
		"--tls-private-key-file=" + s.credentials.path("apiserver.key"),
		"--token-auth-file=" + s.credentials.path("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.credentials.path("service-account.key"),
		"--service-account-signing-key-file=" + s.credentials.path("service-account.key"),
		"--allow-privileged=true",
		"--disable-admission-plugins=" + strings.Join(s.unfitPlugins(), ","),
	}
	args = append(args, s.apiServerFlags()...)
	egress, err := s.egressFlags()
	if err != nil {
		return process.Spec{}, err
	}
	args = append(args, egress...)
	if s.options.AuditLog {
		audit, err := s.auditFlags()
		if err != nil {
			return process.Spec{}, err
		}
		args = append(args, audit...)
	}
	client, err := rest.HTTPClientFor(s.adminConfig())
	if err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Path:  s.options.Binaries.Path(binaries.KubeAPIServer),
		Args:  args,
		Ready: answers(client, s.adminConfig().Host+"/readyz"),
	}, nil
}

// unfitPlugins are the admission plugins that rely on a controller which this
// cluster lacks: one taints new nodes until the node controller finds them
// ready, the other waits for a namespace's default ServiceAccount.
func (s *starter) unfitPlugins() []string {
	var plugins []string
	if s.options.Kubelet == nil {
		plugins = append(plugins, "TaintNodesByCondition")
	}
	if !s.options.Controllers {
		plugins = append(plugins, "ServiceAccount")
	}
	return plugins
}

// auditPolicy records every request for an object, twice: before it is handled
// and, with the answer's code, after. A reader can thus tell whether it has
// seen all of what was answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
  - level: None
    nonResourceURLs: ["*"]
  - level: Metadata
`

func (s *starter) auditFlags() ([]string, error) {
	policy := s.path("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + s.path(auditLogName),
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=0", // no rotation
	}, nil
}

func (s *starter) controllerManager() (process.Spec, error) {
	kubeconfig := s.path("controller-manager.kubeconfig")
	if err := writeKubeconfig(kubeconfig, "controller-manager", s.config(s.credentials.controllerManager)); err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Path: s.options.Binaries.Path(binaries.KubeControllerManager),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--controllers=" + strings.Join(s.controllers(), ","),
			// Each controller acts under its own account, as in a real cluster.
			"--use-service-account-credentials=true",
			"--root-ca-file=" + s.credentials.path("apiserver.crt"),
			"--leader-elect=false",
			"--secure-port=0",
		},
		Ready: s.controllersWork,
	}, nil
}

func (s *starter) controllers() []string {
	if s.options.Kubelet != nil {
		return []string{"*"}
	}
	return controllers
}

// controllersWork asks for a thing that only a running controller makes.
func (s *starter) controllersWork(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.adminConfig())
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func (s *starter) scheduler() (process.Spec, error) {
	kubeconfig := s.path("scheduler.kubeconfig")
	if err := writeKubeconfig(kubeconfig, "scheduler", s.config(s.credentials.scheduler)); err != nil {
		return process.Spec{}, err
	}
	port, err := s.ports.Take()
	if err != nil {
		return process.Spec{}, err
	}
	// Its own certificate is self-signed; all that is asked is whether it lives.
	insecure := &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := rest.HTTPClientFor(insecure)
	if err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Path: s.options.Binaries.Path(binaries.KubeScheduler),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--leader-elect=false",
			"--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(port),
			"--cert-dir=" + s.path("scheduler"),
			"--authentication-skip-lookup=true",
		},
		Ready: answers(client, "https://"+address(port)+"/healthz"),
	}, nil
}

func (s *starter) kwok() (process.Spec, error) {
	config := s.path("stages.yaml")
	delay := strconv.FormatInt(s.options.Nodes.ReadyDelay.Milliseconds(), 10)
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(stages, ": READY_DELAY_MILLISECONDS", ": "+delay)), 0o600); err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Path: s.options.Binaries.Path(binaries.Kwok),
		Args: []string{
			"--kubeconfig=" + s.path(kubeconfigName),
			"--config=" + config,
			"--manage-all-nodes=true",
			"--node-lease-duration-seconds=0",
			"--cidr=10.244.0.0/16",
			"--node-ip=" + advertised,
		},
		// kwok reads options from ~/.kwok too; this cluster is to be the same for all.
		Env:   []string{"KWOK_WORKDIR=" + s.path("kwok")},
		Ready: s.nodesReady,
	}, nil
}

// nodesReady creates the nodes, if they are not there, and asks whether kwok
// has made them ready.
func (s *starter) nodesReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.adminConfig())
	if err != nil {
		return err
	}
	for i := range s.options.Nodes.Count {
		name := fmt.Sprintf("node-%d", i+1)
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			wanted := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{corev1.LabelHostname: name},
			}}
			if _, err := client.CoreV1().Nodes().Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
				return err
			}
			return fmt.Errorf("node %s was created just now", name)
		}
		if !ready(node) {
			return fmt.Errorf("node %s is not Ready", name)
		}
	}
	return nil
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s *starter) config(u user) *rest.Config { return s.credentials.config(u, s.apiAddress()) }
func (s *starter) adminConfig() *rest.Config  { return s.config(s.credentials.admin) }

// apiAddress is where the API server listens.
func (s *starter) apiAddress() string {
	if k := s.options.Kubelet; k != nil {
		return net.JoinHostPort(k.Address.String(), strconv.Itoa(s.apiPort))
	}
	return address(s.apiPort)
}

// answers is a probe that succeeds when url is answered with 200.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s", url, response.Status)
		}
		return errors.Join(err, response.Body.Close())
	}
}
