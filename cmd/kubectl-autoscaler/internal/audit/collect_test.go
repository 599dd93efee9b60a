package audit

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/binding"
)

// cluster has Deployments, and not the operator's kinds.
type cluster struct {
	client.Reader
	deployments int
	// expireAt is the page whose token is too old.
	expireAt int
	asked    []string
}

func (c *cluster) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	l, isDeployments := into.(*appsv1.DeploymentList)
	if !isDeployments {
		return fmt.Errorf("find its resource: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "AutoScaler"}})
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	c.asked = append(c.asked, fmt.Sprintf("%d from %q", o.Limit, o.Continue))
	if c.expireAt > 0 && len(c.asked) == c.expireAt {
		return apierrors.NewResourceExpired("the token is too old")
	}
	from, _ := strconv.Atoi(o.Continue)
	until := c.deployments
	if o.Limit > 0 && from+int(o.Limit) < until {
		until = from + int(o.Limit)
		l.Continue = strconv.Itoa(until)
	}
	for i := from; i < until; i++ {
		l.Items = append(l.Items, appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "production", Name: fmt.Sprintf("d%05d", i)}})
	}
	return nil
}

type noManagers struct{}

func (noManagers) EachLive(context.Context, string, func(*binding.ManagerError)) error { return nil }

func TestDeploymentsAreReadInPagesAndAnewWhereThoseExpire(t *testing.T) {
	for name, tc := range map[string]struct {
		expireAt int
		asked    []string
	}{
		"in pages": {0, []string{`500 from ""`, `500 from "500"`, `500 from "1000"`}},
		"anew":     {3, []string{`500 from ""`, `500 from "500"`, `500 from "1000"`, `0 from ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &cluster{deployments: 1200, expireAt: tc.expireAt}
			c := &collector{reader: reader, managers: noManagers{}}

			entries, partial, err := c.collect(t.Context(), "", labels.Everything())

			require.NoError(t, err)
			require.NoError(t, partial)
			assert.Equal(t, tc.asked, reader.asked)
			require.Len(t, entries, 1200, "each once")
			assert.Equal(t, "d01199", entries[1199].Deployment)
			assert.True(t, c.absent, "the operator is not installed")
		})
	}
}
