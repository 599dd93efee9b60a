package node

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// The node's own images, their archives (with a suffix) and names.
const (
	pauseName    = "pause"
	corednsName  = "coredns"
	imageTag     = "node"
	imagePrefix  = "localhost/"
	pauseImage   = imagePrefix + pauseName + ":" + imageTag
	corednsImage = imagePrefix + corednsName + ":" + imageTag
)

// WriteImage writes an image archive for this machine, as Load takes it. A program is
// a static executable, or the folder of a main package in the checkout at root, which
// is built; the first one is what the image runs.
func WriteImage(ctx context.Context, root, archive, name, tag string, programs ...string) error {
	args := []string{"run", "-C", filepath.Join(root, "test", "tools", "image"), "."}
	for _, program := range programs {
		args = append(args, "--binary="+program)
	}
	args = append(args, "--name="+name, "--tag="+tag, "--output="+archive)
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("image %s: %w\n%s", name, err, out)
	}
	return nil
}

// makeImages writes the archives of the node's own images.
func (n *Node) makeImages(ctx context.Context, root string) error {
	fmt.Fprintln(n.options.Progress, "  making the node's images (the first time, what makes them is compiled)")
	if err := goBuild(ctx, root, n.path(pauseName), "./test/node/pause"); err != nil {
		return err
	}
	for name, program := range map[string]string{
		pauseName: n.path(pauseName), corednsName: n.binaries.Path(binaries.CoreDNS),
	} {
		if err := WriteImage(ctx, root, n.path(name+".tar"), imagePrefix+name, imageTag, program); err != nil {
			return err
		}
	}
	return nil
}

// goBuild builds a static program of the checkout.
func goBuild(ctx context.Context, root, to, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=netgo,osusergo", "-o", to, pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	return nil
}
