package v1alpha1

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// ShareMaxLength and SharePattern are the accepted form of tolerances and other
// shares. The CRD schema states the same.
const (
	ShareMaxLength = 8
	SharePattern   = `^(0(\.[0-9]{1,6})?|1(\.0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$`
)

var share = regexp.MustCompile(SharePattern)

// errShare states the accepted form.
var errShare = errors.New(`must be a share from 0 to 1 with at most 6 digits after the point, as "0.1"; a trailing m divides by 1000, so "100m" is 0.1`)

// ParseShare gives the number that a string of the accepted form stands for: the
// float64 nearest to it, from 0 to 1. The length is checked first.
func ParseShare(s string) (float64, error) {
	if len(s) > ShareMaxLength || !share.MatchString(s) {
		return 0, errShare
	}
	if digits, milli := strings.CutSuffix(s, "m"); milli {
		s = digits + "e-3"
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errShare
	}
	return v, nil
}
