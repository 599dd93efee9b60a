package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFC13_ExtremeQuantitiesAreFoundBeforeTheyAreDecoded(t *testing.T) {
	for value, want := range map[string]string{
		"1e-2147483648":           "spec.metrics[0].averageValue",
		"2E6024865272343":         "spec.metrics[0].averageValue",
		"-.5e+1000":               "spec.metrics[0].averageValue",
		"e99999":                  "spec.metrics[0].averageValue",
		strings.Repeat("9", 1000): "spec.metrics[0].averageValue",
		"1e3":                     "",
		"100m":                    "",
		"0.5Gi":                   "",
		"sum(rate(a1e9999[2m]))":  "",
	} {
		object := map[string]any{"spec": map[string]any{"metrics": []any{map[string]any{"averageValue": value}}}}
		assert.Equal(t, want, ExtremeQuantity(object), value)
	}
	assert.Empty(t, ExtremeQuantity(map[string]any{"kind": "Thing"}))
}
