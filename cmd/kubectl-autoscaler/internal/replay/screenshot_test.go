//go:build integration

package replay

import (
	"context"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browser is a Chromium under one of its names.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium in the path (Debian: apt-get install chromium)")
	return ""
}

func TestABrowserWithoutANetworkShowsTheChart(t *testing.T) {
	chromium, dir := browser(t), t.TempDir()
	page, shot := filepath.Join(dir, "replay.html"), filepath.Join(dir, "replay.png")
	html := succeed(t, "-f", "testdata/order-service.yaml", "--load", "testdata/spike.json", "--compare", "hpa", "-o", "html")
	require.NoError(t, os.WriteFile(page, []byte(html), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--proxy-server=127.0.0.1:9", "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--window-size=1280,900", "--screenshot="+shot, "file://"+page).CombinedOutput()
	require.NoError(t, err, "%s", output)
	file, err := os.Open(shot)
	require.NoError(t, err)
	defer file.Close()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	pixels := map[string]int{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			c := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
			pixels[fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)]++
		}
	}
	for what, of := range map[string]string{"the AutoScaler": "#1f5fbf", "the HPA": "#e07b00", "the load": "#222b36", "too few ready": "#fbd9d3"} {
		assert.Greater(t, pixels[of], 100, "%s is drawn", what)
	}
}
