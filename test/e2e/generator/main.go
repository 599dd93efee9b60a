// Command generator is the load of the acceptance: customers who order from a service,
// as many items a second as they are told to, and remember who served them.
//
//	POST /load?items=880   from now on 880 items a second, in 40 orders
//	GET  /report           what has been ordered, and the first answer of each replica
//	     /hanging/…        takes a request and never answers
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	ordersPerSecond = 40
	// maxItems is the highest load, in items a second.
	maxItems = 1000 * ordersPerSecond
)

func main() {
	to := flag.String("to", "", "URL that orders are posted to")
	flag.Parse()
	g := &generator{
		to: *to, first: map[string]time.Time{},
		// Each order is balanced by itself: no connection outlives it.
		client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	go g.run()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /load", g.turn)
	mux.HandleFunc("GET /report", g.report)
	mux.HandleFunc("/hanging/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintln(os.Stderr, "generator:", server.ListenAndServe())
	os.Exit(1)
}

type generator struct {
	to     string
	client *http.Client

	mu       sync.Mutex
	load     int
	owed     int64 // what is still to be ordered, in billionths of an item
	answered int
	failures []failure
	failed   int
	first    map[string]time.Time
}

// failure is an order that was not taken.
type failure struct {
	Time  time.Time `json:"time"`
	Error string    `json:"error"`
}

// keptFailures bounds the memory of failures: the first ones tell most.
const keptFailures = 100

// run counts by the time that has passed: on a busy machine a tick may be missed, and the
// load is to be what was asked for all the same.
func (g *generator) run() {
	last := time.Now()
	for range time.Tick(time.Second / ordersPerSecond) {
		now := time.Now()
		g.mu.Lock()
		g.owed += int64(g.load) * now.Sub(last).Nanoseconds()
		n := g.owed / int64(time.Second)
		g.owed -= n * int64(time.Second)
		g.mu.Unlock()
		last = now
		if n > 0 {
			go g.order(int(n))
		}
	}
}

func (g *generator) order(items int) {
	by, err := g.post(items)
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.failed++
		if len(g.failures) < keptFailures {
			g.failures = append(g.failures, failure{now, err.Error()})
		}
		return
	}
	g.answered++
	if _, known := g.first[by]; !known {
		g.first[by] = now
	}
}

func (g *generator) post(items int) (string, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.to+"?items="+strconv.Itoa(items), http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := g.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func (g *generator) turn(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query().Get("items")
	n, err := strconv.Atoi(given)
	if err != nil || n < 0 || n > maxItems {
		http.Error(w, fmt.Sprintf("items=%q: want a whole number from 0 to %d", given, maxItems), http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	g.load, g.owed = n, 0
	g.mu.Unlock()
}

func (g *generator) report(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	answer := map[string]any{
		"answered": g.answered, "failed": g.failed, "failures": append([]failure{}, g.failures...), "first": maps.Clone(g.first),
	}
	g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, "generator:", err)
	}
}
