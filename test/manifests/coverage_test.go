package manifests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// expected gives every cause of the corpus as "field: message", and every warning.
func expected(t *testing.T) []string {
	t.Helper()
	cases, err := Load()
	require.NoError(t, err)
	var all []string
	for _, c := range cases {
		for _, cause := range c.Causes {
			all = append(all, cause.Field+": "+string(cause.Message))
		}
		for _, warning := range c.Warnings {
			all = append(all, string(warning))
		}
	}
	return all
}

func covered(corpus []string, pattern string) bool {
	return slices.ContainsFunc(corpus, regexp.MustCompile(pattern).MatchString)
}

func TestEveryRuleOfTheSchemaHasAnInvalidManifest(t *testing.T) {
	corpus := expected(t)
	for _, resource := range []string{"autoscalers", "metricprofiles"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "autoscale.example.com_"+resource+".yaml"))
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(data, &crd))
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		rules := map[string]string{}
		schemaRules("spec", &spec, rules)
		require.Greater(t, len(rules), 15, resource)
		for _, rule := range slices.Sorted(maps.Keys(rules)) {
			assert.True(t, covered(corpus, rules[rule]), "%s: no manifest of test/manifests/invalid is refused by %s", resource, rule)
		}
	}
}

// schemaRules collects what a schema demands below a path, each with a pattern of
// what the API server says of it.
func schemaRules(path string, s *apiextensionsv1.JSONSchemaProps, rules map[string]string) {
	add := func(present bool, rule, message string) {
		if present {
			rules[path+": "+rule] = "^" + strings.ReplaceAll(regexp.QuoteMeta(path), `\[0\]`, `\[\d+\]`) + ": .*" + message
		}
	}
	add(s.Minimum != nil, "minimum", "greater than or equal to")
	add(s.Maximum != nil, "maximum", "less than or equal to")
	add(s.MinLength != nil, "minLength", "should be at least")
	add(s.MaxLength != nil, "maxLength", "Too long")
	add(s.Pattern != "", "pattern", "should match")
	add(s.Enum != nil, "enum", "Unsupported value")
	add(s.MinItems != nil, "minItems", "should have at least")
	add(s.MaxItems != nil, "maxItems", "Too many")
	add(s.MaxProperties != nil, "maxProperties", "Too many")
	add(s.Format == "date-time", "format", "must be of type date-time")
	for _, v := range s.XValidations {
		rules[path+": "+v.Rule] = ": .*" + regexp.QuoteMeta(v.Message)
	}
	if unique := s.XListType; unique != nil && *unique != "atomic" {
		rules[path+": unique"] = "^" + regexp.QuoteMeta(path) + `\[\d+\]: Duplicate`
	}
	for _, name := range s.Required {
		rules[path+"."+name+": required"] = "^" + strings.ReplaceAll(regexp.QuoteMeta(path+"."+name), `\[0\]`, `\[\d+\]`) + ": Required"
	}
	for name := range s.Properties {
		child := s.Properties[name]
		schemaRules(path+"."+name, &child, rules)
	}
	if s.Items != nil && s.Items.Schema != nil {
		schemaRules(path+"[0]", s.Items.Schema, rules)
	}
}

// unreachable are messages that no manifest of the corpus is answered with, and why.
var unreachable = map[string]string{
	// The schema refuses these first; the words are for objects that are stored past it.
	"must be from %d to %d":                                                                 "the schema has the bounds",
	"must be at least minReplicas (%d)":                                                     "the schema has a rule",
	"name at least one metric; without one nothing can be decided":                          "the schema has minItems",
	"list the namespaces that may use the profile, or \"*\" for all":                        "the schema has minItems",
	"query: is %d bytes long, more than %d":                                                 "the schema has maxLength",
	"query: no value for %s":                                                                "a name is never empty",
	"query: is no PromQL expression: %w":                                                    "a failure of the parser itself",
	"query: the result is a %s, not a number":                                               "PromQL has no more types",
	"must have at most %d characters":                                                       "the schema has maxLength",
	"must have 1 to %d characters; leave the parameter out for the profile's default":       "the schema has a rule",
	"must be at most maxReplicas (%d)":                                                      "the schema has a rule",
	"say when it begins, as \"30 7 * * 1-5\" for half past seven on working days":           "the schema has minLength",
	"must be at least the schedule's minReplicas (%d)":                                      "the schema has a rule",
	"is needed for semantics Backlog: the items that arrive per second":                     "the schema has a rule",
	"is needed for semantics Backlog: the seconds in which the backlog is to be worked off": "the schema has a rule",
	"is for semantics Backlog only":                                                         "the schema has a rule",
	"is for series PerTarget only":                                                          "the schema has a rule",
	"must be the name of a Prometheus label: letters, digits and _, at most 128":            "the schema has a pattern",
	"must begin with a letter and have at most 63 lower-case letters, digits and _":         "the schema has a pattern",
	"an empty value cannot be asked for":                                                    "the schema has minLength",
	"is no schedule of five fields: %T":                                                     "the library makes nothing else of five fields",
	// They need another moment, configuration or past than one manifest can have;
	// unit tests of webhook and binding have them.
	"spec.claimPolicy: AutoScaler %q takes the replica count next; this one stands by until that one goes":                                                                                                      onlyAWhile,
	"AutoScaler %q was created earlier, asks for the replica count of Deployment %q too, and takes it next; delete that AutoScaler, set its dryRun, or point it at another Deployment first":                    onlyAWhile,
	"the replica count of Deployment %q is being claimed by AutoScaler %q; if that one is not created, the claim ends by itself within a minute: try again then":                                                onlyAWhile,
	"the replica count of Deployment %q %s, and the platform asks for a permission to take it over: %q needs a Role in namespace %q with the verb %q on resource scalebindings of group %s, resourceNames [%s]": "claims.require_permission is off here",
	"is or was last held by AutoScaler %q": "claims.require_permission is off here",
	"is waited for by AutoScaler %q":       "claims.require_permission is off here",
	"%s %q, made by %s, already scales Deployment %q; delete %s first, or set dryRun to compare beside it":             "an HPA's owner does not exist here, and the garbage collector removes the HPA",
	"ScaleBinding %q cannot be used: %s; delete it, and the claim is made anew (kubectl -n %s delete scalebinding %s)": brokenByHand,
	"ownerRef and ownerUID are not set together":                                                                       brokenByHand,
	"its epoch cannot grow any more":                                                                                   brokenByHand,
	"and %d more warnings":                                                                                             "an AutoScaler has no sixteen warnings without the platform's rules",
	// They are for the log, or for a condition.
	"AutoScaler %q was created earlier, asks for the replica count of Deployment %q too, and takes it next":                                      inACondition,
	"the replica count of Deployment %q is being claimed by AutoScaler %q; if that one is not created, the claim ends by itself within a minute": inACondition,
	"asking whether %q may take over Deployment %s: %w":                                                                                          inTheLog,
	"the Deployment could not be looked at for warnings":                                                                                         inTheLog,
	"other replica managers could not be looked for":                                                                                             inTheLog,
	"reading ScaleBinding %s/%s: %w":                                                                                                             inTheLog,
	"took over from AutoScaler %s, which no longer asks for it":                                                                                  "a binding's history",
}

const (
	onlyAWhile   = "only while nobody holds what several ask for"
	brokenByHand = "the guard and the schema refuse such a binding"
	inACondition = "an AutoScaler that stands by says so in its condition Bound"
	inTheLog     = "the requester is told that something could not be looked up"
)

// What the validation, the webhooks and the arbiter of claims say to a person is in
// the corpus, but for what is unreachable. The platform's rules are not: each
// platform has its own words.
func TestEveryMessageOfAdmissionHasAManifest(t *testing.T) {
	corpus := expected(t)
	needed := map[string]bool{}
	for _, file := range []string{
		"api/v1alpha1/validation.go", "api/v1alpha1/validation_metrics.go", "api/v1alpha1/validation_behavior.go",
		"api/v1alpha1/validation_schedules.go", "api/v1alpha1/validation_profile.go",
		"scaling/spec/cron.go", "scaling/spec/parameters.go", "scaling/spec/profile.go",
		"scaling/prometheus/template.go", "scaling/prometheus/promql.go",
		"scaling/prometheus/promql_limits.go", "scaling/prometheus/promql_labels.go", "scaling/prometheus/promql_specimen.go",
		"webhook/check.go", "webhook/claim.go", "webhook/permission.go", "webhook/warnings.go", "webhook/warnings_spec.go",
		"binding/arbiter.go", "binding/managers.go",
	} {
		for _, m := range messagesOf(t, filepath.Join("..", "..", filepath.FromSlash(file))) {
			if _, ok := unreachable[m]; ok {
				needed[m] = true
				continue
			}
			assert.True(t, covered(corpus, pattern(m)), "%s: no manifest of test/manifests is answered with %q", file, m)
		}
	}
	for m := range unreachable {
		assert.True(t, needed[m], "no longer a message: %q", m)
	}
}

// messagesOf gives the texts of several words that a Go file hands to a function, puts
// into a value or names as a constant.
func messagesOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		var args []ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			args = n.Args
		case *ast.CompositeLit:
			args = n.Elts
		case *ast.ValueSpec:
			args = n.Values
		default:
			return true
		}
		for _, arg := range args {
			literal, ok := arg.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			if strings.Count(text, " ") >= 3 {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

var verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// pattern of what a format makes.
func pattern(format string) string {
	var b strings.Builder
	last := 0
	for _, at := range verb.FindAllStringIndex(format, -1) {
		fmt.Fprintf(&b, "%s.*", regexp.QuoteMeta(format[last:at[0]]))
		last = at[1]
	}
	return b.String() + regexp.QuoteMeta(format[last:])
}
