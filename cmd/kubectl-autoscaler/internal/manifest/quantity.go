package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// extreme is a number that resource.Quantity would write out digit by digit, for minutes or
// for ever. The exponents of quantities that mean something have two digits.
var extreme = regexp.MustCompile(`^\s*[+-]?[0-9.]*[eE][+-]?[0-9]{4,}\s*$|^\s*[+-]?[0-9.]{100,}`)

// ExtremeQuantity gives the path of the first text in an object's spec that must not be
// decoded into a quantity, or "". To be asked before an object of Kubernetes is decoded into
// its type.
func ExtremeQuantity(object map[string]any) string { return findExtreme(object["spec"], "spec") }

func findExtreme(value any, path string) string {
	switch v := value.(type) {
	case string:
		if extreme.MatchString(v) {
			return path
		}
	case []any:
		for i, item := range v {
			if found := findExtreme(item, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := findExtreme(v[key], path+"."+key); found != "" {
				return found
			}
		}
	}
	return ""
}
