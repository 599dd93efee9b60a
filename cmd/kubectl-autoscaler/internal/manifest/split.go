package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// splitter gives the documents of a stream, which lines that begin with --- separate.
type splitter struct {
	in *bufio.Reader
	// line is the number of lines that were read, and read that of bytes.
	line, read int
	began      bool
	// bad is what is wrong with the line that the next document begins after.
	bad string
}

// chunk is the text of one document, and the number of its first line.
type chunk struct {
	text []byte
	line int
	// trouble is why there is no text.
	trouble string
}

func newSplitter(in io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(in, 64<<10)}
}

var errEndless = fmt.Errorf("the file is larger than %d MiB", maxFile>>20)

// next gives the next document, which may be empty, or io.EOF.
func (s *splitter) next() (chunk, error) {
	if !s.began {
		s.began = true
		if err := s.begin(); err != nil {
			return chunk{}, err
		}
	}
	c := chunk{line: s.line + 1, trouble: s.bad}
	s.bad = ""
	size := 0
	for atStart := true; ; {
		part, err := s.in.ReadSlice('\n')
		s.read += len(part)
		ends := bytes.HasSuffix(part, []byte("\n"))
		if s.read > maxFile {
			return chunk{}, errEndless
		}
		if ends {
			s.line++
		}
		if rest, separates := bytes.CutPrefix(part, []byte("---")); atStart && separates {
			if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' {
				s.bad = "a line that begins with --- separates documents; nothing but a comment may follow in it"
			}
			return c, s.skipLine(ends)
		}
		size += len(part)
		c.take(part, size)
		atStart = ends
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return c.last(size, err)
		}
	}
}

// last is the document at the end of the stream, where there is one.
func (c *chunk) last(size int, err error) (chunk, error) {
	if !errors.Is(err, io.EOF) || size == 0 && c.trouble == "" {
		return chunk{}, err
	}
	return *c, nil
}

// take adds a part of a document that has a size with it.
func (c *chunk) take(part []byte, size int) {
	switch {
	case c.trouble != "":
	case size > MaxDocument:
		c.text, c.trouble = nil, fmt.Sprintf("the document is larger than %d MiB, and the API server takes no more", MaxDocument>>20)
	default:
		c.text = append(c.text, part...)
	}
}

// skipLine leaves what is longer than the buffer of a line that separates.
func (s *splitter) skipLine(ends bool) error {
	for !ends && s.read <= maxFile {
		part, err := s.in.ReadSlice('\n')
		s.read += len(part)
		switch ends = bytes.HasSuffix(part, []byte("\n")); {
		case ends:
			s.line++
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return nil
}

// begin takes the mark of UTF-8 away.
func (s *splitter) begin() error {
	mark, _ := s.in.Peek(3) // an error comes again with the first read
	switch {
	case bytes.Equal(mark, []byte("\xef\xbb\xbf")):
		_, err := s.in.Discard(3)
		return err
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		return errors.New("the file is UTF-16, and manifests are UTF-8; save it as that")
	}
	return nil
}

// blank says that a document is nothing but empty lines and plain comments, for which no
// parser is needed.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(bytes.TrimLeft(line, " "), "\r\n")
		if len(line) > 0 && (line[0] != '#' || bytes.ContainsFunc(line, unprintable)) {
			return false
		}
	}
	return true
}

func unprintable(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }
