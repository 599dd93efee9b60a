package race

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// proxy stands between one operator and the API server. It records what the operator
// reads and writes, and makes requests fail. A write that it has let through is
// carried out even if the operator dies meanwhile.
type proxy struct {
	operator int
	recorder *recorder
	faults   *faults
	// kill ends the operator, unless it must live; it says whether it did.
	kill func() bool

	server    *httptest.Server
	transport http.RoundTripper
	upstream  *url.URL
	pass      *httputil.ReverseProxy
}

func newProxy(t *testing.T, operator int, r *recorder, f *faults, api *rest.Config) *proxy {
	t.Helper()
	upstream, err := url.Parse(api.Host)
	require.NoError(t, err)
	// The operator's own credentials pass through; only the trust in the API server
	// is the proxy's.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(api))
	require.NoError(t, err)
	p := &proxy{operator: operator, recorder: r, faults: f, transport: transport, upstream: upstream}
	p.pass = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     transport,
		FlushInterval: -1, // a watch's events go out as they come
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.StartTLS() // a kubeconfig's token is sent over TLS only
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// resourcePath is the path of a namespaced resource, an object or its subresource.
var resourcePath = regexp.MustCompile(`^/apis?(?:/([a-z0-9.-]+))?/v[a-z0-9]+/namespaces/([^/]+)/([a-z]+)(?:/([^/]+))?(?:/([a-z]+))?$`)

// request is what an operator asks for.
type request struct {
	method, group, namespace, resource, name, subresource string
}

func parse(r *http.Request) (request, bool) {
	parts := resourcePath.FindStringSubmatch(r.URL.Path)
	if parts == nil || r.URL.Query().Has("watch") {
		return request{}, false
	}
	return request{r.Method, parts[1], parts[2], parts[3], parts[4], parts[5]}, true
}

// scale says that it is for a Deployment's scale.
func (r request) scale() bool { return r.resource == "deployments" && r.subresource == "scale" }

// String is the request without the operator that made it.
func (r request) String() string {
	return strings.Join([]string{r.method, r.group, r.namespace, r.resource, r.name, r.subresource}, " ")
}

func (r request) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: r.name}
}

// bindingSpec says that a binding's spec is written.
func (r request) bindingSpec() bool {
	return r.resource == "scalebindings" && r.subresource == "" && (r.method == http.MethodPost || r.method == http.MethodPut)
}

// ServeHTTP passes a request on, or not. What is not for one namespace passes: the
// operator's caches, and its start.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, ok := parse(r)
	if !ok {
		p.pass.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f := p.fault(req, body)
	if f.kind == killBefore || f.kind == killAfter {
		p.killing(w, r, req, body, f)
		return
	}
	after(r.Context(), f.delay)
	if f.kind != "" {
		p.faults.happened(f.kind)
	}
	switch f.kind {
	case refusal:
		answer(w, f.status, metav1.StatusReasonInternalError)
	case stall:
		answer(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	case conflict:
		if req.method == http.MethodPost {
			answer(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		} else {
			answer(w, http.StatusConflict, metav1.StatusReasonConflict)
		}
	case drop:
		panic(http.ErrAbortHandler)
	case loss:
		p.exchange(r, req, body)
		panic(http.ErrAbortHandler)
	default:
		send(w, p.exchange(r, req, body))
	}
}

// fault decides what goes wrong with a request. Claims fail more often than others.
// A scale write is often slow, so that what was looked up right before it has time to
// change.
func (p *proxy) fault(req request, body []byte) fault {
	what := req.String() + " " + created(req, body)
	switch {
	case req.bindingSpec():
		return p.faults.of(what, slices.Concat(bindingWrite, anyRequest)...)
	case req.scale() && req.method == http.MethodPut:
		return p.faults.slowly(what, anyRequest...)
	}
	return p.faults.of(what, anyRequest...)
}

// created is the name in a created binding, so that the fault of a claim does not
// depend on what else is created in the namespace.
func created(req request, body []byte) string {
	if !req.bindingSpec() {
		return ""
	}
	var b v1alpha1.ScaleBinding
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	return b.Name
}

// killing ends the operator in the middle of a claim.
func (p *proxy) killing(w http.ResponseWriter, r *http.Request, req request, body []byte, f fault) {
	if f.kind == killBefore && p.kill() {
		p.faults.happened(f.kind)
		panic(http.ErrAbortHandler)
	}
	response := p.exchange(r, req, body)
	if f.kind == killAfter && p.kill() {
		p.faults.happened(f.kind)
		panic(http.ErrAbortHandler)
	}
	send(w, response)
}

// after returns when d has passed or the request is given up.
func after(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// answer is an API server's own error.
func answer(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "injected: " + string(reason), //nolint:gosec // an HTTP status
	})
}

// response is an answer that was read whole.
type response struct {
	code   int
	header http.Header
	body   []byte
}

func send(w http.ResponseWriter, r *response) {
	if r == nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body) //nolint:gosec // what the API server answered goes to the operator, which is no browser
}

// exchange lets the API server answer, whatever becomes of the operator, and records
// what that says. It gives nil if there is no answer.
func (p *proxy) exchange(r *http.Request, req request, body []byte) *response {
	out := r.Clone(context.WithoutCancel(r.Context()))
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.upstream.Scheme, p.upstream.Host, "", ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Accept-Encoding") // the transport's own is undone by it
	out.Header.Del("Connection")
	call := p.recorder.now()
	answered, err := p.transport.RoundTrip(out)
	if err != nil {
		return nil
	}
	defer answered.Body.Close()
	content, err := io.ReadAll(answered.Body)
	if err != nil {
		return nil
	}
	p.record(req, span{call, p.recorder.now()}, answered.StatusCode, content)
	return &response{answered.StatusCode, answered.Header, content}
}

// record keeps what the checks need to know.
func (p *proxy) record(req request, s span, code int, content []byte) {
	switch {
	case req.resource == "scalebindings" && req.subresource == "":
		p.recordBinding(req, s, code, content)
	case req.resource == "horizontalpodautoscalers" && req.name == "" && code == http.StatusOK:
		p.recorder.sawHPAList(req.namespace, s)
	case req.scale() && req.method == http.MethodGet && code == http.StatusOK:
		p.recorder.sawScaleRead(req.key())
	case req.scale() && req.method == http.MethodPut && code == http.StatusOK:
		var scale autoscalingv1.Scale
		decode(content, &scale)
		p.recorder.on(req.key(), func(t *target) {
			t.scales = append(t.scales, scaleWrite{s, p.operator, scale.Spec.Replicas, revision(&scale)})
			p.recorder.notify()
		})
	}
}

func (p *proxy) recordBinding(req request, s span, code int, content []byte) {
	var b v1alpha1.ScaleBinding
	if code == http.StatusOK || code == http.StatusCreated {
		decode(content, &b)
	}
	switch {
	case req.bindingSpec() && b.Name != "":
		w := bindWrite{span: s, owner: b.Spec.OwnerUID, epoch: b.Spec.Epoch}
		if b.Spec.OwnerRef != nil {
			w.name = b.Spec.OwnerRef.Name
		}
		p.recorder.on(nameOf(&b), func(t *target) { t.binds = append(t.binds, w); p.recorder.notify() })
	case req.method == http.MethodGet && req.name != "" && (code == http.StatusOK || code == http.StatusNotFound):
		p.recorder.on(req.key(), func(t *target) {
			t.looks[p.operator] = append(t.looks[p.operator], look{s, b.Spec.OwnerUID, b.Spec.Epoch})
		})
	}
}

// codec reads what the API server answers, JSON or protobuf.
var codec = func() runtime.Decoder {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(known).UniversalDeserializer()
}()

func decode(content []byte, into runtime.Object) {
	if _, _, err := codec.Decode(content, nil, into); err != nil {
		panic("an answer of the API server cannot be read: " + err.Error())
	}
}
