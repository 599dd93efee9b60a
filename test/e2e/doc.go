// Package e2e is the acceptance of the operator: stories that a person who installs it
// lives through, on a real node, with the real cert-manager, a real Prometheus and real
// pods under load. `make e2e` tells them, docs/acceptance.md says what came out.
package e2e
