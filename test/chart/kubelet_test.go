//go:build integration

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// kubelet runs the operator's pods: of the pods of one template one, whose readiness is
// that of the others too. Its files are those of the pod's volumes, its arguments those
// of its container, its rights those of its account; ports alone are others, for two
// pods here share one machine.
type kubelet struct {
	*world
	network *network
	manager string
	dir     string

	runs   map[string]*run // by namespace and template
	ending sync.WaitGroup
}

// run is a pod that runs.
type run struct {
	dir     string
	process *process.Process
	webhook string
	health  string
}

func startKubelet(w *world, n *network) {
	w.Helper()
	k := &kubelet{world: w, network: n, dir: w.TempDir(), runs: map[string]*run{}}
	var err error
	k.manager, err = manager()
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			if err := k.round(ctx); err != nil && ctx.Err() == nil {
				w.Log("the kubelet of the test:", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	w.Cleanup(func() {
		cancel()
		running.Wait()
		for name, r := range k.runs {
			k.stop(name, r)
		}
		k.ending.Wait()
	})

}

// manager is the operator's program, built once.
var manager = sync.OnceValues(func() (string, error) {
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "test", "chart-manager")
	command := exec.Command("go", "build", "-o", path, "./cmd/manager")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return path, nil
})

// round looks at all pods once.
func (k *kubelet) round(ctx context.Context) error {
	var pods corev1.PodList
	if err := k.client.List(ctx, &pods); err != nil {
		return err
	}
	// The newest first: where a Service has several to choose from, it is that one.
	sort.Slice(pods.Items, func(i, j int) bool {
		return pods.Items[j].CreationTimestamp.Before(&pods.Items[i].CreationTimestamp)
	})
	wanted, routed := map[string]bool{}, map[string]bool{}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch pod.Labels["app.kubernetes.io/name"] {
		case "autoscale-operator":
			name := pod.Namespace + "." + pod.Labels["app.kubernetes.io/instance"] + "." + pod.Labels["pod-template-hash"]
			wanted[name] = true
			errs = append(errs, k.sync(ctx, name, pod, routed))
		case "autoscale-operator-test":
			errs = append(errs, k.runToEnd(ctx, pod))
		default: // What is scaled need only seem to run.
			errs = append(errs, k.report(ctx, pod, corev1.PodRunning, true, ""))
		}
	}
	for name, r := range k.runs {
		if !wanted[name] {
			k.stop(name, r)
			delete(k.runs, name)
		}
	}
	return errors.Join(errs...)
}

// sync brings one pod up to date: its process, its files, its readiness, and the Services
// in front of it.
func (k *kubelet) sync(ctx context.Context, name string, pod *corev1.Pod, routed map[string]bool) error {
	r := k.runs[name]
	if r == nil {
		r = &run{dir: filepath.Join(k.dir, name)}
	}
	if err := k.volumes(ctx, pod, r.dir); err != nil {
		return k.report(ctx, pod, corev1.PodPending, false, "ContainerCreating: "+err.Error())
	}
	if r.process == nil {
		if err := k.start(ctx, pod, r); err != nil {
			return err
		}
		k.runs[name] = r
	}
	said, ready := ask(ctx, "http://"+r.health+"/readyz?verbose")
	service := pod.Namespace + "/" + pod.Labels["app.kubernetes.io/instance"]
	if ready && !routed[service] {
		routed[service] = true
		if err := k.route(ctx, pod, r.webhook); err != nil {
			return err
		}
	}
	return k.report(ctx, pod, corev1.PodRunning, ready, said)
}

// start starts the pod's container as a process.
func (k *kubelet) start(ctx context.Context, pod *corev1.Pod, r *run) error {
	kubeconfig, err := k.account(ctx, pod, r.dir)
	if err != nil {
		return err
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	health, err := freePort(ctx)
	if err != nil {
		return err
	}
	r.webhook, r.health = "127.0.0.1:"+strconv.Itoa(port), "127.0.0.1:"+strconv.Itoa(health)
	args := arguments(pod, r.dir)
	args = append(args, "--kubeconfig="+kubeconfig, "--webhook-port="+strconv.Itoa(port),
		"--health-probe-bind-address="+r.health, "--metrics-bind-address=127.0.0.1:0")
	r.process, err = process.Start(ctx, process.Spec{Name: "manager", Path: k.manager, Args: args, Dir: r.dir})
	return err
}

// stop tells a process to end. It goes on for a while, as it would on a node.
func (k *kubelet) stop(name string, r *run) {
	if r.process == nil {
		return
	}
	k.ending.Go(func() {
		_ = r.process.Stop()
		if k.Failed() {
			log, _ := os.ReadFile(r.process.LogPath())
			k.Logf("the log of %s:\n%s", name, log)
		}
	})
}

// runToEnd runs a pod that ends by itself, once.
func (k *kubelet) runToEnd(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	dir := filepath.Join(k.dir, pod.Namespace+"."+pod.Name)
	kubeconfig, err := k.account(ctx, pod, dir)
	if err != nil {
		return err
	}
	args := pod.Spec.Containers[0].Args
	command := exec.CommandContext(ctx, k.manager, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := command.CombinedOutput()
	k.Logf("%s %q: %s", pod.Name, args, output)
	phase := corev1.PodSucceeded
	if err != nil {
		phase = corev1.PodFailed
	}
	return k.report(ctx, pod, phase, false, string(output))
}

// account is a kubeconfig of the pod's account.
func (k *kubelet) account(ctx context.Context, pod *corev1.Pod, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	token, err := k.clientset.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: k.config.Host, CertificateAuthorityData: k.config.CAData, CertificateAuthority: k.config.CAFile}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: pod.Namespace}
	config.CurrentContext = "x"
	path := filepath.Join(dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// arguments are those of the container, with its files where they are here.
func arguments(pod *corev1.Pod, dir string) []string {
	var args []string
	for _, arg := range pod.Spec.Containers[0].Args {
		for _, mount := range pod.Spec.Containers[0].VolumeMounts {
			arg = strings.Replace(arg, "="+mount.MountPath, "="+filepath.Join(dir, mount.Name), 1)
		}
		args = append(args, arg)
	}
	return args
}

// volumes writes the files of a pod's Secrets and ConfigMaps that are not what they
// should be.
func (k *kubelet) volumes(ctx context.Context, pod *corev1.Pod, dir string) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		files := map[string][]byte{}
		switch {
		case v.Secret != nil:
			if err := k.secret(ctx, pod.Namespace, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional, files); err != nil {
				return err
			}
		case v.Projected != nil && strings.HasPrefix(v.Name, "kube-api-access"):
			continue
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				if err := k.project(ctx, pod.Namespace, source, files); err != nil {
					return err
				}
			}
		}
		if err := writeFiles(filepath.Join(dir, v.Name), files); err != nil {
			return err
		}
	}
	return nil
}

func (k *kubelet) project(ctx context.Context, namespace string, source corev1.VolumeProjection, files map[string][]byte) error {
	if s := source.Secret; s != nil {
		return k.secret(ctx, namespace, s.Name, s.Items, s.Optional, files)
	}
	var m corev1.ConfigMap
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: source.ConfigMap.Name}, &m); err != nil {
		return err
	}
	for name, content := range m.Data {
		files[name] = []byte(content)
	}
	return nil
}

func (k *kubelet) secret(ctx context.Context, namespace, name string, items []corev1.KeyToPath, optional *bool, files map[string][]byte) error {
	var s corev1.Secret
	err := k.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s)
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	if err != nil {
		return err
	}
	if len(items) == 0 {
		for key, content := range s.Data {
			files[key] = content
		}
	}
	for _, item := range items {
		content, ok := s.Data[item.Key]
		if !ok {
			return fmt.Errorf("secret %s has no key %s", name, item.Key)
		}
		files[item.Path] = content
	}
	return nil
}

// writeFiles replaces files as a whole, as a kubelet does.
func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if stored, err := os.ReadFile(path); err == nil && bytes.Equal(stored, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// route puts the pod behind the Services that select it.
func (k *kubelet) route(ctx context.Context, pod *corev1.Pod, webhook string) error {
	var services corev1.ServiceList
	if err := k.client.List(ctx, &services, client.InNamespace(pod.Namespace)); err != nil {
		return err
	}
	for i := range services.Items {
		s := &services.Items[i]
		if strings.HasSuffix(s.Name, "-webhook") && s.Spec.Selector["app.kubernetes.io/instance"] == pod.Labels["app.kubernetes.io/instance"] {
			k.network.route(net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(int(s.Spec.Ports[0].Port))), webhook)
		}
	}
	return nil
}

// report writes the pod's status, if it says something new.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, ready bool, message string) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == status && c.Message == message && pod.Status.Phase == phase {
			return nil
		}
	}
	before := pod.DeepCopy()
	pod.Status.Phase = phase
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, Message: message, LastTransitionTime: metav1.Now()}}
	err := k.client.Status().Patch(ctx, pod, client.MergeFrom(before))
	return client.IgnoreNotFound(err)
}

func ask(ctx context.Context, url string) (said string, ready bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error(), false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "it does not answer", false
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return err.Error(), false
	}
	return body.String(), response.StatusCode == http.StatusOK
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
