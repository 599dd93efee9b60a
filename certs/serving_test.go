package certs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadinessFollowsTheCertificateThatIsServed(t *testing.T) {
	good, other := issued(t, now), issued(t, now)
	for name, tc := range map[string]struct {
		pair Pair
		err  error
		at   time.Time
		want string
	}{
		"valid":                              {good.pair(), nil, now, ""},
		"valid, and no CA beside it":         {Pair{Cert: good.certPEM, Key: good.keyPEM}, nil, now, ""},
		"expired":                            {good.pair(), nil, now.Add(leafLife + time.Hour), "expired at 2026-05-30T12:00:00Z and was not renewed"},
		"not valid yet":                      {good.pair(), nil, now.Add(-time.Hour), "valid from 2026-03-01T11:55:00Z only; compare the clocks"},
		"key of another certificate":         {Pair{Cert: good.certPEM, Key: other.keyPEM}, nil, now, "cannot be used"},
		"the CA of another certificate":      {Pair{Cert: good.certPEM, Key: good.keyPEM, CA: other.bundle()}, nil, now, "none of the ca.crt beside it"},
		"a CA file that is not a PEM one":    {Pair{Cert: good.certPEM, Key: good.keyPEM, CA: []byte("x")}, nil, now, "ca.crt holds no certificate"},
		"an empty certificate":               {Pair{Key: good.keyPEM}, nil, now, "cannot be used"},
		"a certificate that is not a PEM":    {Pair{Cert: []byte("\x00\xff"), Key: good.keyPEM}, nil, now, "cannot be used"},
		"none, and the source says why":      {Pair{}, errors.New("the mail is late"), now, "no serving certificate yet: the mail is late"},
		"one of two CAs, as in a rotation":   {Pair{Cert: good.certPEM, Key: good.keyPEM, CA: append(other.bundle(), good.bundle()...)}, nil, now, ""},
		"expired, while its CA is unrelated": {Pair{Cert: good.certPEM, Key: good.keyPEM, CA: other.bundle()}, nil, now.Add(leafLife + time.Hour), "none of the ca.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := served(t, &source{pair: tc.pair, err: tc.err})
			clk.SetTime(tc.at)
			if err := s.Check(); tc.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, tc.want)
			}
		})
	}
}

func TestWhatIsOfNoUseNeverReplacesWhatIsServed(t *testing.T) {
	before, after, stranger := issued(t, now), issued(t, now), issued(t, now)
	from := &source{pair: before.pair()}
	s, clk := served(t, from)
	for name, tc := range map[string]struct {
		pair Pair
		err  error
	}{
		"a certificate without its key yet":  {Pair{Cert: after.certPEM, Key: before.keyPEM, CA: after.bundle()}, nil},
		"a CA without its certificate yet":   {Pair{Cert: before.certPEM, Key: before.keyPEM, CA: after.bundle()}, nil},
		"half a file":                        {Pair{Cert: after.certPEM[:len(after.certPEM)/2], Key: after.keyPEM}, nil},
		"files that are gone":                {Pair{}, errors.New("tls.crt is not there")},
		"a certificate of an unknown signer": {Pair{Cert: stranger.certPEM, Key: stranger.keyPEM, CA: after.bundle()}, nil},
		"a certificate that has expired":     {issued(t, now.Add(-2*leafLife)).pair(), nil},
		"a certificate of the future":        {issued(t, now.Add(2*leafLife)).pair(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			from.give(tc.pair, tc.err)
			s.Refresh(t.Context())
			current, err := s.GetCertificate(nil)
			require.NoError(t, err)
			assert.Equal(t, before.leaf.Raw, current.Leaf.Raw)
			assert.NoError(t, s.Check())
		})
	}

	from.give(Pair{}, errors.New("tls.crt is not there"))
	s.Refresh(t.Context())
	clk.SetTime(now.Add(leafLife + time.Minute))
	assert.ErrorContains(t, s.Check(), "and the next one cannot be used: tls.crt is not there")

	renewed := before.reissued(t, clk.Now())
	from.give(renewed.pair(), nil)
	s.Refresh(t.Context())
	require.NoError(t, s.Check())
	current, err := s.GetCertificate(nil)
	require.NoError(t, err)
	assert.Equal(t, renewed.leaf.Raw, current.Leaf.Raw)
}

func TestTheExpiryOfWhatIsServedIsAMetric(t *testing.T) {
	from := &source{err: errors.New("late")}
	s, _ := served(t, from)
	assert.Zero(t, testutil.CollectAndCount(s), "nothing is served, so nothing is told")
	m := issued(t, now)
	from.give(m.pair(), nil)
	s.Refresh(t.Context())
	from.give(m.reissued(t, now.Add(time.Hour)).pair(), errors.New("cannot be read any more"))
	s.Refresh(t.Context())
	assert.Equal(t, float64(m.leaf.NotAfter.Unix()), testutil.ToFloat64(s))
	problems, err := testutil.CollectAndLint(s)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestACertificateThatIsAwaitedIsLookedForEverySecond(t *testing.T) {
	from := &source{err: errors.New("late")}
	s, clk := served(t, from)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()

	waits := clk.HasWaiters
	require.Eventually(t, waits, 10*time.Second, time.Millisecond)
	from.give(issued(t, now).pair(), nil)
	clk.Step(awaitEvery)
	require.Eventually(t, func() bool { return s.Check() == nil }, 10*time.Second, time.Millisecond)

	require.Eventually(t, waits, 10*time.Second, time.Millisecond)
	renewed := issued(t, now)
	from.give(renewed.pair(), nil)
	clk.Step(refreshEvery)
	require.Eventually(t, func() bool {
		current, err := s.GetCertificate(nil)
		return err == nil && current.Leaf.Equal(renewed.leaf)
	}, 10*time.Second, time.Millisecond)
}
