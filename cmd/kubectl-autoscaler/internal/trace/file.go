package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// Stdin is the name for standard input.
const Stdin = "-"

// File is a recording in a file.
type File struct {
	// Size is the number of bytes of the file, 0 where that is not known.
	Size int64

	columns []string
	named   bool

	name string
	file io.ReadCloser
	read atomic.Int64
	rows Rows
}

// Options say how a file is read.
type Options struct {
	// Stdin is what the name "-" stands for.
	Stdin io.Reader
	// Series picks one of several series of a JSON file; nil wants the only one.
	Series Labels
	// Warn is told of what the server warned of.
	Warn func(string)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Open opens a file and tells from how it begins what is in it.
func Open(name string, o Options) (*File, error) {
	f := &File{name: name}
	if err := f.open(o.Stdin); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(counting{f.file, &f.read}, 64<<10)
	if mark, _ := in.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
		_, _ = in.Discard(len(byteOrderMark)) // it has been seen
	}
	begins, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(&PlaceError{Name: name, Err: err}, f.Close())
	}
	switch text := bytes.TrimLeft(begins, " \t\r\n"); {
	case bytes.IndexByte(begins, 0) >= 0:
		return nil, errors.Join(&PlaceError{Name: name, Err: errors.New("is no text; CSV, or the JSON of a range query, is expected")}, f.Close())
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		f.rows, f.columns = ReadJSON(in, o.Series, o.Warn), []string{""}
		return f, nil
	}
	c, err := newCSV(in, f.shown())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.columns, f.named, f.rows = c.columns, c.named, c.rows
	return f, nil
}

func (f *File) open(stdin io.Reader) error {
	if f.name == Stdin {
		f.file = io.NopCloser(stdin)
		return nil
	}
	file, err := os.Open(f.name)
	if err != nil {
		return err
	}
	f.file = file
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		f.Size = info.Size()
	}
	return nil
}

func (f *File) shown() string {
	if f.name == Stdin {
		return "standard input"
	}
	return f.name
}

// Values are the columns of values, with the names that a CSV file's first line gives
// them, or empty ones.
func (f *File) Values() []string { return f.columns }

// Named says whether the first line gave names.
func (f *File) Named() bool { return f.named }

// Read is how many bytes have been read so far.
func (f *File) Read() int64 { return f.read.Load() }

// Close closes it.
func (f *File) Close() error { return f.file.Close() }

// Rows can be read once.
func (f *File) Rows() Rows {
	return func(yield func(Row, error) bool) {
		for row, err := range f.rows {
			if !yield(row, f.placed(err)) {
				return
			}
		}
	}
}

// placed gives an error that knows only its offset a line and a column, for which the
// file is read once more.
func (f *File) placed(err error) error {
	var at *offsetError
	if !errors.As(err, &at) {
		return err
	}
	placed := &PlaceError{Name: f.shown(), Err: at.err}
	if f.name == Stdin {
		placed.Err = fmt.Errorf("%w (after %d bytes)", at.err, at.offset)
		return placed
	}
	file, openErr := os.Open(f.name)
	if openErr != nil {
		return placed
	}
	defer file.Close()
	placed.Line, placed.Column = position(io.LimitReader(file, at.offset))
	return placed
}

// position is that of the end of a text.
func position(r io.Reader) (line, column int) {
	line, column = 1, 1
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		if newest := bytes.LastIndexByte(buffer[:n], '\n'); newest >= 0 {
			line += bytes.Count(buffer[:n], []byte("\n"))
			column = n - newest
		} else {
			column += n
		}
		if err != nil {
			return line, column
		}
	}
}

// counting counts what is read.
type counting struct {
	io.Reader
	n *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}
