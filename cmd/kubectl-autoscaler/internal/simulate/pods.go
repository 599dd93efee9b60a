package simulate

import "time"

// pods are a Deployment's: those that are ready, and those that will be. A scale-down
// takes those that are not ready first, as a ReplicaSet does, and the newest of them.
type pods struct {
	asked int32
	after time.Duration
	// starting are groups of pods that are not ready yet, the oldest first.
	starting []starting
	unready  int32
}

type starting struct {
	at   time.Time // ready at
	pods int32
}

func newPods(replicas int32, after time.Duration) pods { return pods{asked: replicas, after: after} }

// ready is how many are ready at a time, which must not lie before the last one.
func (p *pods) ready(now time.Time) int32 {
	done := 0
	for _, s := range p.starting {
		if s.at.After(now) {
			break
		}
		p.unready -= s.pods
		done++
	}
	// What is left moves to the front: the groups never take more memory.
	p.starting = p.starting[:copy(p.starting, p.starting[done:])]
	return p.asked - p.unready
}

// next is when more will be ready.
func (p *pods) next() (at time.Time, ok bool) {
	if len(p.starting) == 0 {
		return time.Time{}, false
	}
	return p.starting[0].at, true
}

// scale asks for another count.
func (p *pods) scale(now time.Time, replicas int32) {
	change := replicas - p.asked
	p.asked = replicas
	if change > 0 && p.after > 0 {
		p.starting = append(p.starting, starting{now.Add(p.after), change})
		p.unready += change
	}
	for surplus := -change; surplus > 0 && len(p.starting) > 0; {
		newest := &p.starting[len(p.starting)-1]
		gone := min(surplus, newest.pods)
		newest.pods -= gone
		p.unready -= gone
		surplus -= gone
		if newest.pods == 0 {
			p.starting = p.starting[:len(p.starting)-1]
		}
	}
}
