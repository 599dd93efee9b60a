package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionsThatAreReleased(t *testing.T) {
	for version, want := range map[string]bool{
		"v0.1.0": true, "v10.20.30": true, "v0.1.0-rc.1": true,
		"0.1.0": false, "v0.1": false, "v01.0.0": false, "v0.1.0-": false, "": false,
		"v0.1.0+build": false, // a tag of an image holds no +
	} {
		assert.Equal(t, want, versions.MatchString(version), version)
	}
}

func TestAVersionThatIsNoneStopsBeforeAnythingIsMade(t *testing.T) {
	output := filepath.Join(t.TempDir(), "dist")

	err := run(t.Context(), []string{"--version=next", "--output=" + output}, io.Discard)

	require.ErrorContains(t, err, "--version=next")
	assert.NoDirExists(t, output)
}

func TestOnlyAnEarlierReleaseIsReplaced(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, replaceable(filepath.Join(dir, "not-there")))
	require.NoError(t, replaceable(dir), "an empty folder")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("years of work"), 0o600))

	require.ErrorContains(t, replaceable(dir), "no release")

	require.NoError(t, os.WriteFile(filepath.Join(dir, sumsFile), nil, 0o600))
	assert.NoError(t, replaceable(dir))
}

func TestNotesAreTheChangelogsSection(t *testing.T) {
	const changelog = `# Changelog

The format is explained here.

## Unreleased

### Added

- Something new.

## [0.2.0] - 2027-02-01

### Fixed

- Something old.

## v0.1.0

- The beginning.
`
	for version, want := range map[string]string{
		"v0.3.0": "### Added\n\n- Something new.",
		"v0.2.0": "### Fixed\n\n- Something old.",
		"v0.1.0": "- The beginning.",
	} {
		changes, err := changesOf(changelog, version)
		require.NoError(t, err)
		assert.Equal(t, want, changes, version)
	}
	_, err := changesOf("# Changelog\n\n## Unreleased\n\n## v0.1.0\n\n- The beginning.\n", "v0.2.0")
	assert.ErrorContains(t, err, "nothing of v0.2.0")
}

func TestAPackedChartIsTheSameAtEveryTime(t *testing.T) {
	pack := func(moment time.Time) []byte {
		var packed bytes.Buffer
		out := gzip.NewWriter(&packed)
		out.Comment, out.Extra = "Helm", []byte("magic")
		w := tar.NewWriter(out)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "shop/Chart.yaml", Mode: 0o644, Size: 4, ModTime: moment, Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte("name"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, out.Close())
		return packed.Bytes()
	}
	made := time.Unix(1_700_000_000, 0).UTC()

	first, err := retimed(pack(time.Unix(1, 0)), made)
	require.NoError(t, err)
	second, err := retimed(pack(time.Unix(2, 0)), made)
	require.NoError(t, err)

	assert.Equal(t, first, second)
	in, err := gzip.NewReader(bytes.NewReader(first))
	require.NoError(t, err)
	assert.Equal(t, "Helm", in.Comment)
	assert.Equal(t, []byte("magic"), in.Extra)
	members := tar.NewReader(in)
	header, err := members.Next()
	require.NoError(t, err)
	assert.Equal(t, "shop/Chart.yaml", header.Name)
	assert.True(t, header.ModTime.Equal(made), header.ModTime)
	content, err := io.ReadAll(members)
	require.NoError(t, err)
	assert.Equal(t, "name", string(content))
}

func TestABillBearsTheVersionAndTheTimeOfTheRelease(t *testing.T) {
	r := release{version: "v0.2.0", source: source{made: time.Unix(1_700_000_000, 0).UTC()}}

	settled, err := r.settled([]byte(`{
		"metadata": {"timestamp": "2026-11-30T12:00:00+01:00", "component": {
			"bom-ref": "pkg:golang/example.com/shop@v0.1.0?type=module", "name": "example.com/shop", "version": "v0.1.0"}},
		"components": [{"bom-ref": "pkg:golang/example.com/lib@v0.1.0", "name": "example.com/lib", "version": "v0.1.0"}],
		"dependencies": [{"ref": "pkg:golang/example.com/shop@v0.1.0?type=module", "dependsOn": ["pkg:golang/example.com/lib@v0.1.0"]}]
	}`))

	require.NoError(t, err)
	assert.JSONEq(t, `{
		"metadata": {"timestamp": "2023-11-14T22:13:20Z", "component": {
			"bom-ref": "pkg:golang/example.com/shop@v0.2.0?type=module", "name": "example.com/shop", "version": "v0.2.0"}},
		"components": [{"bom-ref": "pkg:golang/example.com/lib@v0.1.0", "name": "example.com/lib", "version": "v0.1.0"}],
		"dependencies": [{"ref": "pkg:golang/example.com/shop@v0.2.0?type=module", "dependsOn": ["pkg:golang/example.com/lib@v0.1.0"]}]
	}`, string(settled))
	_, err = r.settled([]byte(`{}`))
	assert.ErrorContains(t, err, "does not name the program")
}

func TestDocumentsAreJoinedWithOneSeparator(t *testing.T) {
	dir := t.TempDir()
	plain, marked, output := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "all.yaml")
	require.NoError(t, os.WriteFile(plain, []byte("a: 1\n"), 0o600))
	require.NoError(t, os.WriteFile(marked, []byte("---\nb: 2\n"), 0o600))

	require.NoError(t, join(output, []string{plain, marked, plain}))

	content, err := os.ReadFile(output)
	require.NoError(t, err)
	assert.Equal(t, "a: 1\n---\nb: 2\n---\na: 1\n", string(content))
}
