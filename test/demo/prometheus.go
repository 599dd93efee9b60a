package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"example.com/platform/autoscale-operator/test/cluster/process"
)

// loopback is the only address that anything of the demo listens on.
const loopback = "127.0.0.1"

// prometheusConfig scrapes twice a second: a sample belongs to a whole second,
// and a scrape that comes a little early or late must not skip one. The sample of
// a second that is scraped twice is stored once.
const prometheusConfig = `global:
  scrape_interval: 500ms
  scrape_timeout: 400ms
scrape_configs:
- job_name: load
  static_configs:
  - targets: [%q]
`

// prometheusServer is a real Prometheus that can be stopped and started again
// with its data.
type prometheusServer struct {
	path, dir string
	port      int
	running   *process.Process
}

func (p *prometheusServer) url() string { return "http://" + loopback + ":" + strconv.Itoa(p.port) }

// configure writes the configuration that scrapes the load at an address.
func (p *prometheusServer) configure(target string) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(p.config(), fmt.Appendf(nil, prometheusConfig, target), 0o600)
}

func (p *prometheusServer) config() string { return filepath.Join(p.dir, "prometheus.yml") }

func (p *prometheusServer) start(ctx context.Context) error {
	running, err := process.Start(ctx, process.Spec{
		Name: "prometheus", Path: p.path, Dir: p.dir,
		Args: []string{
			"--config.file=" + p.config(),
			"--storage.tsdb.path=" + filepath.Join(p.dir, "data"),
			"--web.listen-address=" + loopback + ":" + strconv.Itoa(p.port),
		},
		Ready: answersOK(p.url() + "/-/ready"),
	})
	if err != nil {
		return err
	}
	p.running = running
	return nil
}

// stop ends the process; the data stays.
func (p *prometheusServer) stop() error {
	if p.running == nil {
		return nil
	}
	err := p.running.Stop()
	p.running = nil
	return err
}

// ask gives the only value of a query.
func (p *prometheusServer) ask(ctx context.Context, query string) (float64, error) {
	c, err := api.NewClient(api.Config{Address: p.url()})
	if err != nil {
		return 0, err
	}
	answer, _, _, err := promv1.NewAPI(c).Query(ctx, query, time.Time{})
	if err != nil {
		return 0, err
	}
	vector, ok := answer.(model.Vector)
	if !ok || len(vector) != 1 {
		return 0, fmt.Errorf("Prometheus answers %q, not one sample", answer) //nolint:staticcheck // a name
	}
	return float64(vector[0].Value), nil
}

// answersOK is a probe that succeeds when url is answered with 200.
func answersOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
