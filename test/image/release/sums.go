package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile is read by sha256sum --check.
const sumsFile = "SHA256SUMS"

// sums writes the sum of every file, in the order of their names.
func (r *release) sums(context.Context) error {
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(r.dir, file.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		all.WriteString(hex.EncodeToString(sum[:]) + "  " + file.Name() + "\n")
	}
	return os.WriteFile(filepath.Join(r.dir, sumsFile), []byte(all.String()), 0o644)
}
