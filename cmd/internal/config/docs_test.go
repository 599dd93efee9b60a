package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/webhook"
)

func docs(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n")

// examples gives the YAML of a page: sections of the configuration, and objects.
func examples(t *testing.T, name string) (sections, objects []string) {
	t.Helper()
	for _, block := range yamlBlock.FindAllStringSubmatch(docs(t, name), -1) {
		if strings.HasPrefix(block[1], "apiVersion:") {
			objects = append(objects, strings.Split(block[1], "\n---\n")...)
		} else {
			sections = append(sections, block[1])
		}
	}
	return sections, objects
}

// starts expects that the operator would start with a configuration.
func starts(t *testing.T, c *Config) {
	t.Helper()
	for i := range c.Endpoints {
		// Whether the files that it names are there is the next question.
		require.NoError(t, c.Endpoints[i].Validate())
	}
	_, err := binding.NewManagers(binding.ManagersOptions{Registered: c.Managers.Registered()})
	require.NoError(t, err)
	defaults, err := c.Defaults.Values()
	require.NoError(t, err)
	_, err = c.Rules.Compile(defaults)
	require.NoError(t, err)
}

func TestTheOperatorStartsWithEveryDocumentedConfiguration(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range []string{"configuration.md", "platform-rules.md"} {
		sections, _ := examples(t, page)
		for _, section := range sections {
			name, _, _ := strings.Cut(section, ":")
			seen[name] = true
			if name != "endpoints" {
				section += "\n" + anEndpoint
			}
			c, err := load(t, section)
			require.NoError(t, err, section)
			starts(t, c)
		}
	}
	assert.Equal(t, map[string]bool{"endpoints": true, "managers": true, "defaults": true, "claims": true, "rules": true}, seen)
}

func TestTheDocumentedPermissionsAreRoles(t *testing.T) {
	_, objects := examples(t, "configuration.md")
	var claims []rbacv1.PolicyRule
	for _, text := range objects {
		var kind struct{ APIVersion, Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(text), &kind))
		require.Equal(t, rbacv1.SchemeGroupVersion.String(), kind.APIVersion)
		switch kind.Kind {
		case "Role":
			var role rbacv1.Role
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &role))
			claims = append(claims, role.Rules...)
		case "ClusterRole":
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &rbacv1.ClusterRole{}))
		default:
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &rbacv1.ClusterRoleBinding{}))
		}
	}
	assert.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"scalebindings"},
		ResourceNames: []string{"web"}, Verbs: []string{webhook.VerbClaim},
	}}, claims)
}

// keys gives every key that a part of the configuration may have. Of types that are
// not ours, which have manuals of their own, it gives no more than their own key.
func keys(of reflect.Type) []string {
	if of = element(of); of.Kind() != reflect.Struct {
		return nil
	}
	var all []string
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		path := element(f.Type).PkgPath() // a struct without a name has none
		ours := path == "" || strings.HasPrefix(path, "example.com/")
		if ours || options == "inline" {
			all = append(all, keys(f.Type)...)
		}
		if options != "inline" {
			all = append(all, name)
		}
	}
	return all
}

// element of pointers and lists.
func element(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return of
}

func TestEveryKeyOfTheConfigurationIsDocumented(t *testing.T) {
	all := keys(reflect.TypeFor[Config]())
	for _, key := range []string{"endpoints", "url", "tls_config", "proxy_url", "scale_down_max_step", "targets", "message_expression"} {
		require.Contains(t, all, key)
	}
	text := docs(t, "configuration.md")
	require.NotContains(t, all, "", "every field has a key")
	missing := slices.DeleteFunc(all, func(key string) bool { return strings.Contains(text, "`"+key+"`") })
	assert.Empty(t, missing, "docs/configuration.md does not name them")
}

var disabled = regexp.MustCompile(`(?m)^#([a-z]+:|-|  )`)

func TestTheShippedConfigurationStartsAlsoWithWhatItHasAsComments(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "manager", "config.yaml"))
	require.NoError(t, err)
	c, err := load(t, disabled.ReplaceAllString(string(data), "$1"))
	require.NoError(t, err)
	starts(t, c)
	assert.Len(t, c.Managers, 1)
	assert.Len(t, c.Rules, 1)
	assert.True(t, c.Claims.RequirePermission)
	defaults, err := c.Defaults.Values()
	require.NoError(t, err)
	none, withDefaults := &v1alpha1.AutoScaler{}, &v1alpha1.AutoScaler{}
	v1alpha1.Default(none, v1alpha1.Defaults{})
	v1alpha1.Default(withDefaults, defaults)
	assert.Equal(t, none, withDefaults, "the defaults that it shows are the built-in ones")
}
