package sparql

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Body is a text for PutGraph or PostGraph, sent from memory. A body without Len is stored first,
// beyond 4 MiB in a temporary file.
func Body(text []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return sizedBody{bytes.NewReader(text)}, nil }
}

type sizedBody struct{ *bytes.Reader }

func (sizedBody) Close() error { return nil }

const keptInMemory = 4 << 20

// measured is a repeatable body of known length. The length is always sent: Virtuoso 7 answers 201
// Created to a chunked body, and has written nothing.
type measured struct {
	open func() (io.ReadCloser, error)
	size int64
	file *os.File
}

func measure(body func() (io.ReadCloser, error)) (m *measured, err error) {
	in, err := body()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if b, ok := in.(interface{ Len() int }); ok {
		return &measured{open: body, size: int64(b.Len())}, nil
	}
	var head bytes.Buffer
	n, err := io.Copy(&head, io.LimitReader(in, keptInMemory+1))
	if err != nil {
		return nil, err
	}
	if n <= keptInMemory {
		return &measured{open: Body(head.Bytes()), size: n}, nil
	}
	m = &measured{}
	if m.file, err = os.CreateTemp("", "rsbridge-upload-*"); err != nil {
		return nil, err
	}
	if m.size, err = io.Copy(m.file, io.MultiReader(&head, in)); err != nil {
		m.close()
		return nil, err
	}
	m.open = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(m.file, 0, m.size)), nil }
	return m, nil
}

func (m *measured) close() {
	if m.file != nil {
		_ = m.file.Close() // nothing of it is needed any more
		_ = os.Remove(m.file.Name())
	}
}
