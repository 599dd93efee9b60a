package v1alpha1

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// decimals are the values of FC-11 … FC-14 and what each stands for; 0 is refused.
// The integration tests hold the CRD schema to the same table.
var decimals = map[string]float64{
	"100":                   100,
	"0.5":                   0.5,
	"100m":                  0.1,
	"0.5m":                  0.0005,
	"0.000001":              1e-6,
	"0.000001m":             1e-9,
	"999999999999.999999":   999999999999.999999,
	"0":                     0,
	"0m":                    0,
	"0.000000":              0,
	"":                      0,
	" 1":                    0,
	"1 ":                    0,
	"+1":                    0,
	"-1":                    0,
	"01":                    0,
	".5":                    0,
	"1.":                    0,
	"1,5":                   0,
	"0.0000001":             0,
	"1e3":                   0,
	"1E":                    0,
	"1k":                    0,
	"1Ki":                   0,
	"Ki":                    0,
	"m":                     0,
	"1mm":                   0,
	"NaN":                   0,
	"Inf":                   0,
	"+Inf":                  0,
	"0x1p4":                 0,
	"1e1.5":                 0,
	".07893E985.90504":      0,
	"0e9999":                0,
	"1e400":                 0,
	"1e-400":                0,
	"1e-2147483648":         0,
	"2E6024865272343":       0,
	"9999999999999999999":   0,
	"1000000000000":         0,
	"1\n":                   0,
	"١٠٠":                   0,
	strings.Repeat("1", 64): 0,
}

func TestFC14_AStringStandsForOneNumberOrIsRefused(t *testing.T) {
	for in, want := range decimals {
		got, err := ParsePositiveDecimal(in)
		if want == 0 {
			assert.ErrorContains(t, err, `as "100" or "0.5"`, "%q must be refused with the accepted form", in)
			continue
		}
		require.NoError(t, err, "%q", in)
		assert.Equal(t, want, got, "%q", in)
	}
}

func TestFC13_NoValueKeepsTheParserBusy(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, in := range []string{"1e-2147483648", "2E6024865272343", "1e999999999", strings.Repeat("9", 10<<20), strings.Repeat("0.", 5<<20)} {
			_, err := ParsePositiveDecimal(in)
			assert.Error(t, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("parsing did not return")
	}
}

func FuzzParsePositiveDecimal(f *testing.F) {
	for in := range decimals {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		v, err := ParsePositiveDecimal(in)
		if err != nil {
			require.Zero(t, v)
			return
		}
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%q gave %v", in, v)
		require.GreaterOrEqual(t, v, 1e-9, "%q", in)
		require.LessOrEqual(t, v, 1e12, "%q", in)
	})
}
