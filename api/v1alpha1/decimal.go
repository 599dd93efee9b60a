package v1alpha1

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// DecimalMaxLength and DecimalPattern are the accepted form of targetPerReplica.
// The CRD schema states the same, so that no general quantity parser, whose cost
// grows with the exponent, ever sees a value from a user.
const (
	DecimalMaxLength = 20
	DecimalPattern   = `^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?m?$`
)

var decimal = regexp.MustCompile(DecimalPattern)

// errDecimal states the accepted form.
var errDecimal = errors.New(`must be a decimal number above 0 with at most 12 digits before and 6 after the point, as "100" or "0.5"; a trailing m divides by 1000, so "100m" is 0.1`)

// ParsePositiveDecimal gives the number that a string of the accepted form
// stands for: the float64 nearest to it, from 1e-9 to 1e12. The length is checked first.
func ParsePositiveDecimal(s string) (float64, error) {
	if len(s) > DecimalMaxLength || !decimal.MatchString(s) || !strings.ContainsAny(s, "123456789") {
		return 0, errDecimal
	}
	if digits, milli := strings.CutSuffix(s, "m"); milli {
		s = digits + "e-3"
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errDecimal
	}
	return v, nil
}
