// Command service is what the acceptance scales: a shop that takes orders, counts
// their items, and is ready some time after it has started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxItems is the most that one order may hold: more than a customer who was held up owes.
const maxItems = 1_000_000

var (
	items = promauto.NewCounter(prometheus.CounterOpts{
		Name: "order_items_total", Help: "Items of the orders that this replica took.",
	})
	ready atomic.Bool
)

func main() {
	readyAfter := flag.Duration("ready-after", 2*time.Second, "how long a replica needs before it takes orders")
	goesOn := flag.Duration("goes-on", 3*time.Second, "how long a replica that is to end goes on, until nobody knows it any more")
	flag.Parse()
	if err := run(*readyAfter, *goesOn); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func run(readyAfter, goesOn time.Duration) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) { order(w, r, name) })
	mux.HandleFunc("GET /ready", tellReady)
	mux.Handle("GET /metrics", promhttp.Handler())
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	time.AfterFunc(readyAfter, func() { ready.Store(true) })
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()

	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-asked:
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(goesOn):
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ctx), <-ended)
}

// order takes an order of ?items=N, and says who took it.
func order(w http.ResponseWriter, r *http.Request, name string) {
	n, err := strconv.Atoi(r.FormValue("items"))
	if err != nil || n < 1 || n > maxItems {
		http.Error(w, fmt.Sprintf("items=%q: want a whole number from 1 to %d", r.FormValue("items"), maxItems), http.StatusBadRequest)
		return
	}
	items.Add(float64(n))
	fmt.Fprint(w, name)
}

func tellReady(w http.ResponseWriter, _ *http.Request) {
	if ready.Load() {
		return
	}
	http.Error(w, "it starts", http.StatusServiceUnavailable)
}
