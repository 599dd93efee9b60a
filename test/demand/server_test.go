//go:build integration

package demand

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/cluster/process"
)

// job is a scrape job, group a group of recording rules, as the configuration of
// Prometheus has them: JSON is YAML.
type (
	job struct {
		Name             string              `json:"job_name"`
		Path             string              `json:"metrics_path,omitempty"`
		Params           map[string][]string `json:"params,omitempty"`
		HonorLabels      bool                `json:"honor_labels,omitempty"`
		NativeHistograms bool                `json:"scrape_native_histograms,omitempty"`
		Targets          []targets           `json:"static_configs"`
		Relabel          []relabeling        `json:"metric_relabel_configs,omitempty"`
	}
	targets struct {
		Addresses []string `json:"targets"`
	}
	relabeling struct {
		From  []string `json:"source_labels"`
		Regex string   `json:"regex"`
		To    string   `json:"target_label"`
		Value string   `json:"replacement"`
	}
	group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
)

// deadRemote is a remote storage behind the shared Prometheus that does not answer.
// Only what selects remote="dead" asks it.
const deadRemote = "http://127.0.0.1:1/read"

// prometheusServer is a real Prometheus, to which tests add jobs and rules while it
// runs. It scrapes and evaluates once a second.
type prometheusServer struct {
	dir, address string
	running      *process.Process

	mu     sync.Mutex
	jobs   []job
	groups []group
}

// newPrometheus is one that is not yet started.
func newPrometheus(dir string) (*prometheusServer, error) {
	port, err := ports.Take()
	if err != nil {
		return nil, err
	}
	return &prometheusServer{dir: dir, address: "127.0.0.1:" + strconv.Itoa(port)}, nil
}

func (p *prometheusServer) url() string { return "http://" + p.address }

func (p *prometheusServer) data() string { return filepath.Join(p.dir, "data") }

func (p *prometheusServer) start(ctx context.Context) error {
	if err := p.configure(); err != nil {
		return err
	}
	running, err := process.Start(ctx, process.Spec{
		Name: "prometheus", Path: program, Dir: p.dir,
		Args: []string{
			"--config.file=" + p.config(),
			"--storage.tsdb.path=" + p.data(),
			"--web.listen-address=" + p.address,
			"--web.enable-lifecycle",
			// New jobs are not kept waiting for the default of 5 seconds.
			"--scrape.discovery-reload-interval=100ms",
			// Shorter than what the tests' own clients allow.
			"--query.timeout=3s",
			"--query.max-samples=200000",
		},
		Ready: func(ctx context.Context) error { return p.call(ctx, http.MethodGet, "/-/ready") },
	})
	if err != nil {
		return err
	}
	p.running = running
	return nil
}

// stop ends the process; the data stays.
func (p *prometheusServer) stop() error { return p.running.Stop() }

func (p *prometheusServer) config() string { return filepath.Join(p.dir, "prometheus.json") }

func (p *prometheusServer) configure() error {
	rules := filepath.Join(p.dir, "rules.json")
	if err := writeJSON(rules, map[string]any{"groups": p.groups}); err != nil {
		return err
	}
	return writeJSON(p.config(), map[string]any{
		"global":         map[string]string{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{rules},
		"scrape_configs": p.jobs,
		"remote_read": []any{map[string]any{
			"url": deadRemote, "read_recent": true, "required_matchers": map[string]string{"remote": "dead"},
		}},
	})
}

func writeJSON(path string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// change alters the configuration of the running server. What is not altered goes on.
func (p *prometheusServer) change(t *testing.T, alter func(p *prometheusServer)) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	alter(p)
	require.NoError(t, p.configure())
	require.NoError(t, p.call(t.Context(), http.MethodPost, "/-/reload"))
}

func (p *prometheusServer) scrape(t *testing.T, j job) {
	t.Helper()
	p.change(t, func(p *prometheusServer) { p.jobs = append(p.jobs, j) })
}

func (p *prometheusServer) record(t *testing.T, name string, rules ...rule) {
	t.Helper()
	p.change(t, func(p *prometheusServer) { p.groups = append(p.groups, group{Name: name, Rules: rules}) })
}

func (p *prometheusServer) call(ctx context.Context, method, path string) error {
	request, err := http.NewRequestWithContext(ctx, method, p.url()+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s answers %s: %s", path, response.Status, text)
	}
	return nil
}
