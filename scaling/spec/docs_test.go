package spec

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// examples are the YAML blocks of a document.
func examples(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	parts := strings.Split(string(text), "```yaml\n")[1:]
	require.NotEmpty(t, parts)
	for i := range parts {
		var closed bool
		parts[i], _, closed = strings.Cut(parts[i], "```")
		require.True(t, closed)
	}
	return parts
}

// strictly decodes an object and refuses fields that its type does not have.
func strictly[Spec any](t *testing.T, text string) (metav1.ObjectMeta, Spec) {
	t.Helper()
	var o struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Spec            Spec              `json:"spec"`
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&o), text)
	return o.Metadata, o.Spec
}

func TestTheExamplesInTheDocsAreValid(t *testing.T) {
	profiles := map[string]*v1alpha1.MetricProfile{}
	var scalers []*v1alpha1.AutoScaler
	for _, file := range []string{"../../docs/metric-profiles.md", "../../docs/schedules.md"} {
		for _, text := range examples(t, file) {
			var kind metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal([]byte(text), &kind))
			switch kind.Kind {
			case "MetricProfile":
				meta, spec := strictly[v1alpha1.MetricProfileSpec](t, text)
				profiles[meta.Name] = &v1alpha1.MetricProfile{ObjectMeta: meta, Spec: spec}
				assert.Empty(t, ValidateMetricProfile(profiles[meta.Name]), meta.Name)
			case "AutoScaler":
				meta, spec := strictly[v1alpha1.AutoScalerSpec](t, text)
				scalers = append(scalers, &v1alpha1.AutoScaler{ObjectMeta: meta, Spec: spec})
			default:
				t.Errorf("%s: an example of kind %q", file, kind.Kind)
			}
		}
	}
	for _, a := range scalers {
		assert.Empty(t, ValidateAutoScaler(a, v1alpha1.DefaultLimits), a.Name)
		for i := range a.Spec.Metrics {
			profile := profiles[a.Spec.Metrics[i].MetricProfileRef]
			require.NotNil(t, profile, a.Spec.Metrics[i].MetricProfileRef)
			_, err := Measure(a, i, profile)
			assert.NoError(t, err, a.Name)
		}
	}
}

func TestEveryFieldIsInTheDocs(t *testing.T) {
	for file, of := range map[string]reflect.Type{
		"../../docs/metric-profiles.md": reflect.TypeFor[v1alpha1.MetricProfileSpec](),
		"../../docs/schedules.md":       reflect.TypeFor[v1alpha1.Schedule](),
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			assert.Contains(t, string(text), "\n| `"+name+"` |", file)
		}
	}
}
