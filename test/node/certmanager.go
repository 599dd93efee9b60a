package node

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// certManagerProof is a certificate that the controllers issue by themselves.
const certManagerProof = `apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: proof, namespace: cert-manager}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: proof, namespace: cert-manager}
spec:
  secretName: proof
  commonName: proof
  issuerRef: {name: proof}
`

// startCertManager installs cert-manager's CRDs, runs its controllers beside the
// control plane, and waits until they have issued a certificate.
func (n *Node) startCertManager(ctx context.Context) error {
	sources, err := binaries.SourceDir(ctx, binaries.CertManager)
	if err != nil {
		return err
	}
	crds, proof := filepath.Join(sources, "deploy", "crds"), n.path("certmanager-proof.yaml")
	if err := os.WriteFile(proof, []byte(certManagerProof), 0o600); err != nil {
		return err
	}
	if err := run(ctx, n.kubectl("apply", "--server-side", "--filename="+crds)); err != nil {
		return err
	}
	if err := run(ctx, n.kubectl("wait", "--for=condition=Established", "--timeout=30s", "--filename="+crds)); err != nil {
		return err
	}
	if err := run(ctx, n.kubectl("apply", "--server-side", "--filename="+proof)); err != nil {
		return err
	}
	p, err := process.Start(ctx, process.Spec{
		Name: "certmanager", Dir: n.dir,
		Path: n.binaries.Path(binaries.CertManager), Args: []string{"--kubeconfig=" + n.Kubeconfig()},
		Ready: func(ctx context.Context) error {
			return run(ctx, n.kubectl("--namespace=cert-manager", "wait", "--for=condition=Ready", "--timeout=2s", "certificate/proof"))
		},
		ReadyWithin: time.Minute,
	})
	if err != nil {
		return err
	}
	n.processes = append(n.processes, p)
	return nil
}
