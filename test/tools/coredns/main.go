// Command coredns is CoreDNS with the plugins that a cluster of the tests uses, and
// without the thirty others, most of which bring a cloud's client along.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
