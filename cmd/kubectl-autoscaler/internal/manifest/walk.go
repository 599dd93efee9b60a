package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the name of the standard input among files.
const Stdin = "-"

// Read reads files, folders, and the standard input for "-". What cannot be read is told
// in the set, and the rest is read all the same.
func (s *Source) Read(paths ...string) *Set {
	set := &Set{opened: map[string]bool{}}
	for _, path := range paths {
		set.begin()
		switch {
		case set.full:
			return set
		case path == Stdin && set.opened[path]:
		case path == Stdin:
			set.opened[path] = true
			s.readStream(set, "stdin", s.In)
		case strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://"):
			set.trouble(Place{File: path}, "addresses are not read; fetch it, and give it as -f -")
		default:
			s.readPath(set, path)
		}
	}
	return set
}

func (set *Set) trouble(at Place, message string) {
	set.troubles++
	if set.troubles > maxTroubles {
		set.leave(at, fmt.Sprintf("here is the file's trouble number %d, and the rest of it was not read", set.troubles))
		return
	}
	set.Troubles = append(set.Troubles, Trouble{Place: at, Message: message})
}

// leave ends the reading of a file, with why.
func (set *Set) leave(at Place, why string) {
	set.left = true
	set.Troubles = append(set.Troubles, Trouble{Place: at, Message: why})
}

// begin readies the set for the next file.
func (set *Set) begin() { set.troubles, set.left = 0, false }

func (s *Source) readPath(set *Set, path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		set.trouble(Place{File: path}, reason(err))
		return
	case !info.IsDir():
		s.readFile(set, path)
		return
	}
	found := false
	err = filepath.WalkDir(path, func(inside string, entry fs.DirEntry, err error) error {
		set.begin()
		switch {
		case set.full:
			return fs.SkipAll
		case err != nil:
			set.trouble(Place{File: inside}, reason(err))
		case entry.IsDir():
			if inside != path && !s.Recursive {
				return fs.SkipDir
			}
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(inside)) && !special(inside):
			found = true
			s.readFile(set, inside)
		}
		return nil
	})
	if err == nil && !found {
		set.trouble(Place{File: path}, "the folder has no .yaml, .yml or .json file; with -R its folders are looked into, too")
	}
}

// special says that a name is one of a pipe, a socket, a device or a folder. To read some
// of these would not end.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() // an error comes again with the opening
}

// readFile reads a file, once, however often it is named.
func (s *Source) readFile(set *Set, path string) {
	clean := filepath.Clean(path)
	if set.opened[clean] {
		return
	}
	set.opened[clean] = true
	file, err := os.Open(path) //nolint:gosec // the file that the user named
	if err != nil {
		set.trouble(Place{File: path}, reason(err))
		return
	}
	defer file.Close()
	s.readStream(set, path, file)
}

func (s *Source) readStream(set *Set, name string, in io.Reader) {
	set.Files++
	set.begin()
	documents := newSplitter(in)
	for !set.left {
		c, err := documents.next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			set.trouble(Place{File: name, Line: documents.line}, reason(err))
			return
		case c.trouble != "":
			set.trouble(Place{File: name, Line: c.line, Column: 1}, c.trouble)
		case blank(c.text):
		default:
			s.decode(set, name, c)
		}
	}
}

// reason is an error without the path, which stands before it.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Sprint(at.Err)
	}
	return err.Error()
}
