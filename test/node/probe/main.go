// Command probe is a pod for tests of the node: it answers with its name, and fetches
// what it is asked to, so that one sees the network from inside a pod.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	name, err := os.Hostname()
	if err != nil {
		fail(err)
	}
	http.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
	http.HandleFunc("GET /fetch", fetch)
	fmt.Println("probe listens")
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: time.Second}
	fail(server.ListenAndServe())
}

// fetch answers with what the given URL answers.
func fetch(w http.ResponseWriter, r *http.Request) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.FormValue("url"), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "probe:", err)
	os.Exit(1)
}
