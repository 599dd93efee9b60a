// Command render writes config/guard/policies.yaml from its template and default
// values, for an API server that serves MutatingAdmissionPolicies.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/guard/policies"
)

// header says where the file comes from.
const header = "# Rendered by make generate from policies.yaml.tmpl and values.yaml.\n"

func main() {
	if err := render(); err != nil {
		fmt.Fprintln(os.Stderr, "render the guard's policies:", err)
		os.Exit(1)
	}
}

func render() error {
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return err
	}
	values, err := policies.Defaults(root)
	if err != nil {
		return err
	}
	rendered, err := policies.Render(root, values, policies.MutatingAdmissionPolicies)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, policies.RenderedFile), append([]byte(header), rendered...), 0o644) //nolint:gosec // a file of the checkout
}
