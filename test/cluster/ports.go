package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"

	"example.com/platform/autoscale-operator/test/cluster/filelock"
)

// Ports are chosen from here: below the ranges from which systems give ports to
// outgoing connections (Linux 32768, macOS 49152), and outside NodePort's
// 30000-32767. So only a program that asks for the very port can be in the way,
// and the clusters of one user ask each other first.
const (
	firstPort = 20000
	lastPort  = 29999
)

// portAttempts is how many ports are tried before giving up.
const portAttempts = 200

// Ports are loopback ports that no other holder of the same folder has.
type Ports struct {
	dir         string
	first, last int
	locks       []*filelock.Lock
}

// NewPorts reserves ports by lock files in dir, which all who might collide share.
func NewPorts(dir string) *Ports { return &Ports{dir: dir, first: firstPort, last: lastPort} }

// Take reserves a port on which nothing listens now. It stays reserved until
// Release or the end of this process.
func (p *Ports) Take() (int, error) {
	for range portAttempts {
		port := p.first + rand.IntN(p.last-p.first+1)
		lock, err := filelock.Try(filepath.Join(p.dir, strconv.Itoa(port)), "a port of a cluster")
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if !free(port) {
			if err := lock.Remove(); err != nil {
				return 0, err
			}
			continue
		}
		p.locks = append(p.locks, lock)
		return port, nil
	}
	return 0, fmt.Errorf("none of %d ports tried between %d and %d is free", portAttempts, p.first, p.last)
}

// Release gives all ports back.
func (p *Ports) Release() error {
	var err error
	for _, lock := range p.locks {
		err = errors.Join(err, lock.Remove())
	}
	p.locks = nil
	return err
}

func free(port int) bool {
	listener, err := net.Listen("tcp", address(port)) //nolint:noctx // a local socket, closed at once
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// address is where a component listens, or is reached, on a port.
func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// loopback is the only address that anything of a cluster listens on.
const loopback = "127.0.0.1"
