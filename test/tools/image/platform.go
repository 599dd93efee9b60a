package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// platform is what an image runs on.
type platform struct{ OS, Architecture string }

func (p platform) String() string { return p.OS + "/" + p.Architecture }

// machines are the architectures and how their executables are marked.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// hostPlatform is that of a node on this machine. Images are Linux's everywhere.
func hostPlatform() string { return "linux/" + runtime.GOARCH }

func parsePlatform(text string) (platform, error) {
	system, architecture, _ := strings.Cut(text, "/")
	if _, known := machines[architecture]; system != "linux" || !known {
		return platform{}, fmt.Errorf("platform %q: linux/amd64 and linux/arm64 are known", text)
	}
	return platform{OS: system, Architecture: architecture}, nil
}

// runsAlone reports why a program would not run in an image for the platform that
// holds nothing else.
func runsAlone(path string, target platform) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("not a Linux executable: %w", err)
	}
	defer file.Close()
	if want := machines[target.Architecture]; file.Machine != want {
		return fmt.Errorf("made for %s, and %s needs %s", file.Machine, target, want)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return errors.New("dynamically linked, and the image has no libraries; build it with CGO_ENABLED=0")
	}
	return nil
}
