package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// probes answer /healthz and /readyz. They are not controller-runtime's, because
// those withhold the reason, and whoever looks at a replica that is not ready needs
// nothing else.
type probes struct {
	log    logr.Logger
	checks []probe

	mu      sync.Mutex
	leaving bool
	// told is what was logged last.
	told string
}

// probe is one condition of readiness.
type probe struct {
	name  string
	check func() error
}

var errLeaving = errors.New("this replica is ending")

// leave makes the process not ready, for good.
func (p *probes) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
}

// ready gives the line of each check, and whether none failed.
func (p *probes) ready() (string, bool) {
	p.mu.Lock()
	leaving := p.leaving
	p.mu.Unlock()
	var text strings.Builder
	ok := true
	tell := func(name string, err error) {
		if err == nil {
			fmt.Fprintf(&text, "[+]%s ok\n", name)
			return
		}
		ok = false
		fmt.Fprintf(&text, "[-]%s: %s\n", name, inOneLine(err))
	}
	if leaving {
		tell("process", errLeaving)
	}
	for _, c := range p.checks {
		tell(c.name, c.check())
	}
	return text.String(), ok
}

// ServeHTTP is /readyz. A change is logged, so that the log tells too.
func (p *probes) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text, ok := p.ready()
	p.mu.Lock()
	if changed := p.told != text; changed && ok {
		p.log.Info("ready")
	} else if changed {
		p.log.Info("not ready", "checks", strings.Split(strings.TrimSpace(text), "\n"))
	}
	p.told = text
	p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprint(w, text)
}

// serve has the manager serve them from its very start, before there is anything to
// be ready for.
func (p *probes) serve(ctx context.Context, mgr manager.Manager, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/readyz", p)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mgr.Add(&manager.Server{
		Name: "probes", Listener: listener,
		Server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute},
	})
}
