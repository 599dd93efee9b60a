package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// settleWithin bounds the wait for the log entries of requests under way.
	settleWithin = 10 * time.Second
	// settleEvery is how often the log is looked at meanwhile.
	settleEvery = 5 * time.Millisecond
)

// Request is one request for an object, as the API server recorded it after
// it was answered.
type Request struct {
	// User is on whose behalf it was made.
	User string
	// Verb is Kubernetes' verb: get, list, watch, create, update, patch, delete
	// or deletecollection.
	Verb string
	// Group, Resource, Subresource, Namespace and Name say for what; Name is
	// empty in a list and, unlike in the answer, in a create.
	Group, Resource, Subresource, Namespace, Name string
	// DryRun requests store nothing.
	DryRun bool
	// Code is the HTTP status of the answer.
	Code int32
	// PolicyFailures are what validating admission policies with the action Audit
	// objected to, each as "policy: message".
	PolicyFailures []string
}

// IsWrite reports whether the request was to change something in storage, even
// if it was refused.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		// Reviews and tokens are created, but not stored.
		return !r.DryRun && r.Group != "authorization.k8s.io" && r.Group != "authentication.k8s.io" && r.Subresource != "token"
	default:
		return false
	}
}

// Requests returns what user has asked for since the start, in the order of the
// answers; the empty user means everybody. Every request that was answered
// before the call is among them, and no watch that still runs.
func (cp *ControlPlane) Requests(ctx context.Context, user string) ([]Request, error) {
	all, err := cp.audit.settled(ctx)
	if err != nil {
		return nil, fmt.Errorf("the API server's audit log: %w", err)
	}
	var requests []Request
	for _, r := range all {
		if user == "" || r.User == user {
			requests = append(requests, r)
		}
	}
	return requests, nil
}

// Writes returns those of Requests that are writes.
func (cp *ControlPlane) Writes(ctx context.Context, user string) ([]Request, error) {
	requests, err := cp.Requests(ctx, user)
	var writes []Request
	for _, r := range requests {
		if r.IsWrite() {
			writes = append(writes, r)
		}
	}
	return writes, err
}

// auditLog follows an audit log. The API server writes an entry before it
// handles a request, and another after the answer: the client may have the
// answer before the second is written, but not before the first.
type auditLog struct {
	path string

	mu       sync.Mutex
	offset   int64
	open     map[string]bool // by audit ID: received, not yet answered
	requests []Request
}

func newAuditLog(path string) *auditLog { return &auditLog{path: path, open: map[string]bool{}} }

// settled returns all answered requests, once those have been recorded as
// answered that are under way now.
func (l *auditLog) settled(ctx context.Context) ([]Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	underWay := make([]string, 0, len(l.open))
	for id := range l.open {
		underWay = append(underWay, id)
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for l.anyOpen(underWay) {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("requests received before are not answered yet: %w", ctx.Err())
		case <-ticker.C:
		}
		if err := l.read(); err != nil {
			return nil, err
		}
	}
	return append([]Request(nil), l.requests...), nil
}

func (l *auditLog) anyOpen(ids []string) bool {
	for _, id := range ids {
		if l.open[id] {
			return true
		}
	}
	return false
}

// read takes in the whole lines that have been added.
func (l *auditLog) read() error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // The rest is half a line, or nothing.
		}
		if err != nil {
			return err
		}
		l.offset += int64(len(line))
		if err := l.take(bytes.TrimSpace(line)); err != nil {
			return err
		}
	}
}

func (l *auditLog) take(line []byte) error {
	var event auditv1.Event
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	id := string(event.AuditID)
	switch event.Stage {
	case auditv1.StageRequestReceived:
		// A watch may last for ever.
		if event.Verb != "watch" {
			l.open[id] = true
		}
	case auditv1.StageResponseComplete, auditv1.StagePanic:
		delete(l.open, id)
		l.requests = append(l.requests, request(event))
	}
	return nil
}

func request(event auditv1.Event) Request {
	r := Request{User: event.User.Username, Verb: event.Verb}
	if event.ImpersonatedUser != nil {
		r.User = event.ImpersonatedUser.Username
	}
	if ref := event.ObjectRef; ref != nil {
		r.Group, r.Resource, r.Subresource = ref.APIGroup, ref.Resource, ref.Subresource
		r.Namespace, r.Name = ref.Namespace, ref.Name
	}
	if uri, err := url.Parse(event.RequestURI); err == nil {
		r.DryRun = uri.Query().Has("dryRun")
	}
	if event.ResponseStatus != nil {
		r.Code = event.ResponseStatus.Code
	}
	r.PolicyFailures = policyFailures(event)
	return r
}

// policyFailuresAnnotation is the API server's, as the actions of a
// ValidatingAdmissionPolicyBinding define it.
const policyFailuresAnnotation = "validation.policy.admission.k8s.io/validation_failure"

func policyFailures(event auditv1.Event) []string {
	value, ok := event.Annotations[policyFailuresAnnotation]
	if !ok {
		return nil
	}
	var failures []struct{ Policy, Message string }
	if err := json.Unmarshal([]byte(value), &failures); err != nil {
		return []string{value}
	}
	var texts []string
	for _, f := range failures {
		texts = append(texts, f.Policy+": "+f.Message)
	}
	return texts
}
