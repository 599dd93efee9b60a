package cluster

import (
	"context"
	"errors"

	"example.com/platform/autoscale-operator/test/cluster/process"
)

// apiServerName is what the API server is called among the components.
const apiServerName = "kube-apiserver"

// errNotStarted says that a cluster has no API server: it was stopped.
var errNotStarted = errors.New("the cluster is stopped")

// StopAPIServer ends the API server and leaves everything else running, for a test
// of an outage; see StartAPIServer. It may be called again.
func (c *Cluster) StopAPIServer() error {
	i, err := c.apiServer()
	if err != nil {
		return err
	}
	c.meant.Store(c.processes[i])
	return c.processes[i].Stop()
}

// StartAPIServer starts the API server that StopAPIServer has ended, as it was, and
// returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	i, err := c.apiServer()
	if err != nil {
		return err
	}
	if c.processes[i] != c.meant.Load() {
		return errors.New("the API server was not stopped")
	}
	p, err := process.Start(ctx, c.processes[i].Spec())
	if err != nil {
		return err
	}
	c.processes[i] = p
	c.watch(p)
	return nil
}

// apiServer is the index of the API server among the processes.
func (c *Cluster) apiServer() (int, error) {
	for i, p := range c.processes {
		if p.Spec().Name == apiServerName {
			return i, nil
		}
	}
	return 0, errNotStarted
}

// watch closes ended when one of the components ends and was not meant to.
func (c *Cluster) watch(processes ...*process.Process) {
	for _, p := range processes {
		go func() {
			<-p.Done()
			if p != c.meant.Load() {
				c.once.Do(func() {
					c.cause = p
					close(c.ended)
				})
			}
		}()
	}
}
