package certs

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const day = 24 * time.Hour

// verifies says whether somebody who trusts these CAs accepts the certificate under
// all its names.
func verifies(m material, bundle []byte, at time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, name := range names {
		if _, err := m.leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: at}); err != nil {
			return err
		}
	}
	return nil
}

// stored is what a Secret gives back.
func stored(t *testing.T, m material) material {
	t.Helper()
	data, err := m.data()
	require.NoError(t, err)
	return readMaterial(data)
}

func TestWhatIsIssuedIsTrustedUnderEachName(t *testing.T) {
	m := stored(t, issued(t, now))
	require.NotNil(t, m.leaf)
	require.NotNil(t, m.caKey)
	assert.NoError(t, verifies(m, m.bundle(), now))
	assert.Equal(t, now.Add(leafLife), m.leaf.NotAfter)
	assert.Equal(t, now.Add(caLife), m.cas[0].NotAfter)
	assert.Error(t, m.leaf.VerifyHostname("elsewhere.svc"))

	again, changes, err := m.next(now.Add(day), names, true)
	require.NoError(t, err)
	assert.Empty(t, changes)
	assert.Equal(t, m, again)
}

func TestWhenSomethingIsIssuedAnew(t *testing.T) {
	old := stored(t, issued(t, now))
	for name, tc := range map[string]struct {
		of      func(material) material
		at      time.Time
		names   []string
		trusted bool
		want    []string
	}{
		"nothing, with a third of its life and a minute left": {at: now.Add(leafLife - leafRenewBefore - time.Minute), trusted: true},
		"a certificate, with less than that":                  {at: now.Add(leafLife - leafRenewBefore + time.Minute), trusted: true, want: []string{"issued a certificate, for it is time"}},
		"a certificate that has expired":                      {at: now.Add(leafLife + time.Minute), trusted: false, want: []string{"issued a certificate, for the one before expired"}},
		"a certificate for another Service":                   {at: now, names: []string{"new.system.svc"}, want: []string{"issued a certificate, for new.system.svc was not in the one before"}},
		"a certificate whose key was lost": {
			of: func(m material) material { m.leaf, m.keyPEM = nil, nil; return m },
			at: now, want: []string{"issued a certificate, for there was none"},
		},
		"a CA whose key was lost, and nothing else": {
			of: func(m material) material { m.caKey = nil; return m },
			at: now, want: []string{"made a CA"},
		},
		"both, where the CA was lost": {
			of: func(m material) material { m.cas, m.caKey = nil, nil; return m },
			at: now, want: []string{"made a CA", "issued a certificate, for nobody trusts who signed the one before"},
		},
		"nothing, a year and a day before the end of the CA": {
			of: func(m material) material { return m.reissued(t, now.Add(caLife-366*day)) },
			at: now.Add(caLife - 366*day), trusted: true,
		},
		"a CA, in its last year": {
			of: func(m material) material { return m.reissued(t, now.Add(caLife-364*day)) },
			at: now.Add(caLife - 364*day), trusted: true, want: []string{"made a CA"},
		},
		"all, after ten years without an operator": {
			at: now.Add(caLife + day), want: []string{"dropped an expired CA", "made a CA", "issued a certificate, for the one before expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := old
			if tc.of != nil {
				m = tc.of(m)
			}
			if tc.names == nil {
				tc.names = names
			}
			next, changes, err := m.next(tc.at, tc.names, tc.trusted)
			require.NoError(t, err)
			assert.Equal(t, tc.want, changes)
			require.NotNil(t, next.leaf)
			for _, name := range tc.names {
				assert.NoError(t, next.leaf.VerifyHostname(name))
			}
			assert.Equal(t, next, stored(t, next), "nothing is lost in a Secret")
		})
	}
}

func TestACertificateNeverOutlivesItsCA(t *testing.T) {
	m := issued(t, now).reissued(t, now.Add(caLife-day))
	assert.Equal(t, m.cas[0].NotAfter, m.leaf.NotAfter)
}

// A story of thirty years: whoever trusts the bundle of one look accepts the certificate
// of the next, and the other way round. That is what keeps admission going while replicas
// and API servers learn of a change at their own pace.
func TestFC36NoRenewalIsEverUntrusted(t *testing.T) {
	m := issued(t, now)
	var cas, leaves int
	for at := now; at.Before(now.Add(30 * 365 * day)); at = at.Add(5 * day) {
		// As often as the Authority looks, around each change.
		for range 3 {
			before := m
			next, changes, err := before.next(at, names, true)
			require.NoError(t, err)
			require.NoError(t, verifies(next, before.bundle(), at), "%s: the API server does not know of %v yet", at, changes)
			require.NoError(t, verifies(before, next.bundle(), at), "%s: a replica does not know of %v yet", at, changes)
			m = stored(t, next)
			for _, change := range changes {
				switch change {
				case "made a CA":
					cas++
				case "issued a certificate, for it is time":
					leaves++
				}
			}
			at = at.Add(keepEvery)
		}
		require.LessOrEqual(t, len(m.cas), 2)
	}
	assert.Equal(t, 3, cas)
	assert.InDelta(t, 30*365/60, leaves, 20)
}

func TestFC36ANewCASignsNothingBeforeItIsKnown(t *testing.T) {
	m := issued(t, now)
	at := now.Add(caLife - 364*day)
	m = m.reissued(t, at.Add(-leafLife+leafRenewBefore-time.Minute)) // it is time for it too
	m, changes, err := m.next(at, names, true)
	require.NoError(t, err)
	require.Equal(t, []string{"made a CA"}, changes)

	for name, tc := range map[string]struct {
		at      time.Time
		trusted bool
		want    []string
	}{
		"a moment later":                     {at.Add(keepEvery), true, nil},
		"while the API server is not told":   {at.Add(10 * day), false, nil},
		"when all had time to learn of it":   {at.Add(settle), true, []string{"issued a certificate, for it is time"}},
		"untold, when there is no time left": {m.leaf.NotAfter.Add(-time.Minute), false, []string{"issued a certificate, for it is time"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, changes, err := m.next(tc.at, names, tc.trusted)
			require.NoError(t, err)
			assert.Equal(t, tc.want, changes)
		})
	}
}

func TestWhatCannotBeReadOfASecretIsAsIfItWereNotThere(t *testing.T) {
	good, other := issued(t, now), issued(t, now)
	whole, err := good.data()
	require.NoError(t, err)
	strange, err := other.data()
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		change  func(map[string][]byte)
		ca, key bool
		leaf    bool
	}{
		"nothing changed":                    {func(map[string][]byte) {}, true, true, true},
		"emptied":                            {func(d map[string][]byte) { clear(d) }, false, false, false},
		"the CA's key is another's":          {func(d map[string][]byte) { d[caKey] = strange[caKey] }, true, false, true},
		"the CA's key is garbage":            {func(d map[string][]byte) { d[caKey] = []byte("x") }, true, false, true},
		"the CA is garbage":                  {func(d map[string][]byte) { d[CAFile] = []byte("x") }, false, false, true},
		"the certificate's key is garbage":   {func(d map[string][]byte) { d[KeyFile] = []byte("x") }, true, true, false},
		"the certificate's key is missing":   {func(d map[string][]byte) { delete(d, KeyFile) }, true, true, false},
		"the certificate's key is another's": {func(d map[string][]byte) { d[KeyFile] = strange[KeyFile] }, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range whole {
				data[k] = v
			}
			tc.change(data)
			m := readMaterial(data)
			assert.Equal(t, tc.ca, len(m.cas) > 0)
			assert.Equal(t, tc.key, m.caKey != nil)
			assert.Equal(t, tc.leaf, m.leaf != nil)
			next, _, err := m.next(now, names, true)
			require.NoError(t, err)
			assert.NoError(t, verifies(next, next.bundle(), now))
		})
	}
}
