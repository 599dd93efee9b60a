package certs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Files are a folder with CertFile, KeyFile and perhaps CAFile, such as a mounted
// Secret.
type Files struct {
	Dir string
	// Origin says where they come from, for whoever waits for them.
	Origin string
}

// Load reads them.
func (f *Files) Load(context.Context) (Pair, error) {
	var pair Pair
	for _, part := range []struct {
		name     string
		content  *[]byte
		optional bool
	}{{CertFile, &pair.Cert, false}, {KeyFile, &pair.Key, false}, {CAFile, &pair.CA, true}} {
		content, err := os.ReadFile(filepath.Join(f.Dir, part.name))
		switch {
		case errors.Is(err, os.ErrNotExist) && part.optional:
		case errors.Is(err, os.ErrNotExist):
			return Pair{}, fmt.Errorf("%s is not there: %s", filepath.Join(f.Dir, part.name), f.Origin)
		case err != nil:
			return Pair{}, err
		}
		*part.content = content
	}
	return pair, nil
}

// Secret is one that an Authority keeps. It is read by the API, because a mounted one
// would follow up to minutes later.
type Secret struct {
	Secrets         corev1.SecretInterface
	Namespace, Name string
	// Remember, if set, is called with what was read.
	Remember func(data map[string][]byte)
}

// Load reads it.
func (s *Secret) Load(ctx context.Context) (Pair, error) {
	secret, err := s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Pair{}, fmt.Errorf("the Secret %s/%s is not there; the leader makes it", s.Namespace, s.Name)
	case err != nil:
		return Pair{}, err
	}
	if s.Remember != nil {
		s.Remember(secret.Data)
	}
	if len(secret.Data[CertFile]) == 0 {
		return Pair{}, fmt.Errorf("the Secret %s/%s holds no certificate yet; the leader issues it", s.Namespace, s.Name)
	}
	return Pair{Cert: secret.Data[CertFile], Key: secret.Data[KeyFile], CA: secret.Data[CAFile]}, nil
}
