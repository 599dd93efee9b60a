package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamespacesToWatchAreSortedAndEachOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		want  []string
	}{
		"none: all":            {"", nil},
		"blank: all":           {" ", nil},
		"one":                  {"shop", []string{"shop"}},
		"several, with blanks": {"shop, bank,  art", []string{"art", "bank", "shop"}},
		"one twice":            {"shop,bank,shop", []string{"bank", "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse([]string{"--namespace=system", "--watch-namespaces=" + tc.value})
			require.NoError(t, err)
			assert.Equal(t, tc.want, o.watchNamespaces)
		})
	}
}

func TestABadCommandLineSaysWhatIsWrong(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"no namespace":                {nil, []string{"--namespace is needed"}},
		"an unknown flag":             {[]string{"--watch-namespace=a"}, []string{"watch-namespace"}},
		"a word":                      {[]string{"--namespace=a", "run"}, []string{`"run" is no flag`}},
		"a namespace that is none":    {[]string{"--namespace=a", "--watch-namespaces=a,B_c"}, []string{"watch-namespaces", `"B_c" is no name of a namespace`}},
		"a comma too many":            {[]string{"--namespace=a", "--watch-namespaces=a,,b"}, []string{`"" is no name of a namespace`}},
		"an unknown way to a pair":    {[]string{"--namespace=a", "--certificates=acme"}, []string{`--certificates is "acme"; it must be provided or self-managed`}},
		"self-managed without names":  {[]string{"--namespace=a", "--certificates=self-managed"}, []string{"--cert-secret is needed", "--webhook-service is needed", "--webhook-configurations is needed"}},
		"a delay that is none":        {[]string{"--namespace=a", "--shutdown-delay=5"}, []string{"shutdown-delay", "parse error"}},
		"a port that is no number":    {[]string{"--namespace=a", "--webhook-port=https"}, []string{"webhook-port"}},
		"a truth that is none":        {[]string{"--namespace=a", "--metrics-secure=perhaps"}, []string{"metrics-secure"}},
		"a configuration that is not": {[]string{"--namespace=a", "--config=/nowhere/config.yaml"}, []string{"/nowhere/config.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tc.args)
			if err == nil {
				err = run(t.Context(), o)
			}
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, inOneLine(err), "\n")
		})
	}
}

func TestWhatEndsTheStartIsOneLineAndNoStackTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("limits: {max_replicas: 0}"), 0o600))
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, begin([]string{"--namespace"}, &stdout, &stderr))
	assert.Equal(t, "autoscale-operator: flag needs an argument: -namespace\n", stderr.String())
	assert.Empty(t, stdout.String())

	o, err := parse([]string{"--namespace=a", "--config=" + file})
	require.NoError(t, err)
	assert.Equal(t, file+": limits.max_replicas is 0; it must be from 1 to 100000", inOneLine(run(t.Context(), o)))
	assert.Equal(t, "a; b; c", inOneLine(errors.Join(errors.New("a"), errors.New("b\r\n\tc"))))
}

func TestHelpAndVersionAreAnswersAndNoErrors(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 0, begin([]string{"--help"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "-watch-namespaces")
	assert.Contains(t, stdout.String(), "-kubeconfig")
	stdout.Reset()
	assert.Equal(t, 0, begin([]string{"--version"}, &stdout, &stderr))
	assert.Equal(t, "autoscale-operator "+version+"\n", stdout.String())
	assert.Empty(t, stderr.String())
	_, err := parse([]string{"-h"})
	assert.ErrorIs(t, err, flag.ErrHelp)
}

func TestWhatIsWatchedIsSaidInWords(t *testing.T) {
	assert.Equal(t, "all namespaces", watching(nil))
	assert.Equal(t, "namespace a", watching([]string{"a"}))
	assert.Equal(t, "namespaces a, b", watching([]string{"a", "b"}))
}
