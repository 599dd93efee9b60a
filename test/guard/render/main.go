// Command render writes the policies of config/guard from their template and default
// values, for API servers that serve MutatingAdmissionPolicies and for others.
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
	for file, served := range map[string][]string{
		policies.RenderedFile: {policies.MutatingAdmissionPolicies},
		policies.DenyingFile:  nil,
	} {
		rendered, err := policies.Render(root, values, served...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, file), append([]byte(header), rendered...), 0o644); err != nil {
			return err
		}
	}
	return nil
}
