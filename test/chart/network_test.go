//go:build integration

package chart

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// network is the way from the API server to Services: it asks for a connection by the
// address of a Service, and gets one to whom the kubelet has put behind it.
type network struct {
	socket string
	dir    string
	server *http.Server
	served errgroup.Group

	mu      sync.Mutex
	targets map[string]string
}

func startNetwork() (*network, error) {
	// Not t.TempDir: the path of a socket is at most about 100 bytes long.
	dir, err := os.MkdirTemp("", "chart")
	if err != nil {
		return nil, err
	}
	n := &network{dir: dir, socket: filepath.Join(dir, "services.sock"), targets: map[string]string{}}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", n.socket)
	if err != nil {
		return nil, err
	}
	n.server = &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: 10 * time.Second}
	n.served.Go(func() error { return n.server.Serve(listener) })
	return n, nil
}

// Stop ends it.
func (n *network) Stop() error {
	err := n.server.Close()
	if served := n.served.Wait(); !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}

// route puts an address behind that of a Service; an empty one takes it away.
func (n *network) route(service, target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.targets[service] = target
}

func (n *network) target(service string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.targets[service]
}

// connect answers a CONNECT.
func (n *network) connect(w http.ResponseWriter, r *http.Request) {
	target := n.target(r.Host)
	if target == "" {
		target = n.target(r.URL.Host)
	}
	if r.Method != http.MethodConnect || target == "" {
		http.Error(w, "nobody is behind "+r.URL.Host, http.StatusBadGateway)
		return
	}
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, buffered); done <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); done <- struct{}{} }()
	<-done
}
