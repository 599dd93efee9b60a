package certs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestReadinessFollowsTheServingCertificate(t *testing.T) {
	crt, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	_, otherKey, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	now := time.Now()

	for name, tc := range map[string]struct {
		crt, key []byte
		now      time.Time
		want     string
	}{
		"valid":                             {crt, key, now, ""},
		"expired":                           {crt, key, now.AddDate(2, 0, 0), "expired at"},
		"not valid yet":                     {crt, key, now.AddDate(-2, 0, 0), "is valid from"},
		"key of another certificate":        {crt, otherKey, now, "cannot be used"},
		"certificate file empty":            {nil, key, now, "cannot be used"},
		"certificate file is not a PEM one": {[]byte("\x00\xff"), key, now, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, CertFile), tc.crt, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, KeyFile), tc.key, 0o600))

			err := Checker(dir, clocktesting.NewFakePassiveClock(tc.now))(nil)

			if tc.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestReadinessFailsWhileThereIsNoCertificate(t *testing.T) {
	err := Checker(t.TempDir(), clocktesting.NewFakePassiveClock(time.Now()))(nil)
	assert.ErrorContains(t, err, "cannot be used")
}
