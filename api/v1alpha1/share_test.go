package v1alpha1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused stands for a string that is no share.
const refused = -1.0

// shares are the values of FC-13 and FC-14, and what each stands for. The integration
// tests hold the CRD schema to the same table.
var shares = map[string]float64{
	"0":                     0,
	"0.1":                   0.1,
	"0.10":                  0.1,
	"100m":                  0.1,
	"0.000001":              1e-6,
	"0.999999":              0.999999,
	"1":                     1,
	"1.0":                   1,
	"1.000000":              1,
	"1000m":                 1,
	"999m":                  0.999,
	"0m":                    0,
	"1.1":                   refused,
	"1.000001":              refused,
	"1001m":                 refused,
	"0100m":                 refused,
	"0.1m":                  refused,
	"00":                    refused,
	"2":                     refused,
	"10%":                   refused,
	"-0.1":                  refused,
	"+0.1":                  refused,
	".1":                    refused,
	"0.":                    refused,
	"0,1":                   refused,
	"\u00200.1":             refused, // a leading space
	"0.1\n":                 refused,
	"":                      refused,
	"m":                     refused,
	"0.0000001":             refused,
	"1e-1":                  refused,
	"1e-2147483648":         refused,
	"0e9999":                refused,
	"NaN":                   refused,
	"Inf":                   refused,
	"0x1p-4":                refused,
	"100u":                  refused,
	"Ki":                    refused,
	"٠":                     refused,
	strings.Repeat("0", 64): refused,
}

func TestFC14_AStringStandsForOneShareOrIsRefused(t *testing.T) {
	for in, want := range shares {
		got, err := ParseShare(in)
		if want == refused {
			assert.ErrorContains(t, err, `as "0.1"; a trailing m divides by 1000`, "%q must be refused with the accepted form", in)
			continue
		}
		require.NoError(t, err, "%q", in)
		assert.InDelta(t, want, got, 0, "%q", in)
	}
}

func TestFC13_NoShareKeepsTheParserBusy(t *testing.T) {
	for _, in := range []string{"1e-2147483648", "2E6024865272343", strings.Repeat("9", 10<<20), "0." + strings.Repeat("0", 10<<20)} {
		_, err := ParseShare(in)
		assert.Error(t, err)
	}
}

func FuzzParseShare(f *testing.F) {
	for in := range shares {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		v, err := ParseShare(in)
		if err != nil {
			require.Zero(t, v)
			return
		}
		require.GreaterOrEqual(t, v, 0.0, "%q", in)
		require.LessOrEqual(t, v, 1.0, "%q", in)
	})
}
