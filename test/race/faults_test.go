package race

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// fault is what goes wrong with one request. The zero value is nothing.
type fault struct {
	kind faultKind
	// status is the code of a refusal.
	status int
	// delay before whatever happens.
	delay time.Duration
}

type faultKind string

const (
	// refusal: answered with an error; the API server never sees the request.
	refusal faultKind = "refusal"
	// stall: no answer for a while, then a time-out; never seen by the API server.
	stall faultKind = "stall"
	// drop: the connection breaks before the API server sees the request.
	drop faultKind = "drop"
	// loss: the API server does what it is asked, and the answer is lost.
	loss faultKind = "loss"
	// conflict: a write of a binding is answered as if somebody else had written it.
	conflict faultKind = "conflict"
	// killBefore and killAfter end the operator right before and right after its
	// write of a binding is stored.
	killBefore faultKind = "kill before"
	killAfter  faultKind = "kill after"
)

// share is how often a fault happens, in thousandths of the requests that it is for.
type share struct {
	kind     faultKind
	thousand int
}

var (
	// anyRequest are the faults of all requests for an object.
	anyRequest = []share{{refusal, 15}, {stall, 5}, {drop, 10}, {loss, 15}}
	// bindingWrite are those of a binding's writes beside them.
	bindingWrite = []share{{conflict, 60}, {killBefore, 8}, {killAfter, 12}}
	// admissionAnswer are those of the way from the operators to the API server.
	admissionAnswer = []share{{loss, 20}}
)

// faults decides what goes wrong. What happens to the nth request of a kind for an
// object depends on the seed alone, in whatever order requests arrive.
type faults struct {
	seed uint64

	mu    sync.Mutex
	nth   map[string]uint64
	count map[faultKind]int
}

func newFaults(seed uint64) *faults {
	return &faults{seed: seed, nth: map[string]uint64{}, count: map[faultKind]int{}}
}

// slowly is of, with more delays.
func (f *faults) slowly(what string, shares ...share) fault {
	result := f.of(what, shares...)
	if random := randomOf(f.seed, "slow "+what); result.delay == 0 && random.IntN(2) == 0 {
		result.delay = time.Duration(random.IntN(1200)) * time.Millisecond
	}
	return result
}

// of decides on a request.
func (f *faults) of(what string, shares ...share) fault {
	f.mu.Lock()
	f.nth[what]++
	n := f.nth[what]
	f.mu.Unlock()
	random := randomOf(f.seed, fmt.Sprintf("%s#%d", what, n))
	result := fault{delay: latency(random)}
	dice := random.IntN(1000)
	for _, s := range shares {
		if dice -= s.thousand; dice < 0 {
			result.kind = s.kind
			break
		}
	}
	result.status = []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests}[random.IntN(3)]
	if result.kind == stall {
		result.delay = time.Duration(500+random.IntN(2500)) * time.Millisecond
	}
	return result
}

// latency is none for most requests, and long for a few.
func latency(random *rand.Rand) time.Duration {
	switch dice := random.IntN(100); {
	case dice < 80:
		return 0
	case dice < 97:
		return time.Duration(random.IntN(40)) * time.Millisecond
	default:
		return time.Duration(random.IntN(500)) * time.Millisecond
	}
}

// happened counts a fault that was carried out.
func (f *faults) happened(kind faultKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[kind]++
}

func (f *faults) counted(kind faultKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[kind]
}

// String tells how often each fault happened.
func (f *faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parts []string
	for kind, n := range f.count {
		parts = append(parts, fmt.Sprintf("%s %d", kind, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// randomOf is a source of chance for one purpose.
func randomOf(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
