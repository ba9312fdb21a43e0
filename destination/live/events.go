package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
)

const eventStream = "text/event-stream"

var (
	errTooLarge = fmt.Errorf("a notification has more than %d bytes", mostBytes)
	errQuiet    = fmt.Errorf("no sign of life within %v", quiet)
	errGap      = errors.New("the source says that it was not heard fast enough")
)

// events hears server-sent events.
func (s *Subscriber) events(ctx context.Context, address string, h *hearing) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(openWithin, func() { cancel(errQuiet) })
	defer patience.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", eventStream)
	req.Header.Set("Cache-Control", "no-cache")
	res, err := s.client.Plain().Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if kind := fetch.Essence(res.Header.Get("Content-Type")); res.StatusCode != http.StatusOK || kind != eventStream {
		return fmt.Errorf("%s, %.100s, and no stream of events", res.Status, kind)
	}
	h.opened()
	err = eachEvent(&alive{res.Body, patience}, func(kind string, data []byte) error {
		if kind == "gap" {
			return errGap
		}
		h.take(data)
		return nil
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// alive puts off the end of a stream with each sign of life.
type alive struct {
	io.Reader
	patience *time.Timer
}

func (a *alive) Read(p []byte) (int, error) {
	a.patience.Reset(quiet)
	return a.Reader.Read(p)
}

// eachEvent reads server-sent events up to their end, by the rules of HTML. An event without data
// is none.
func eachEvent(in io.Reader, f func(kind string, data []byte) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var kind string
	var data, line []byte
	size, begun := 0, true
	for {
		piece, err := r.ReadSlice('\n')
		if size += len(piece); size > mostBytes {
			return errTooLarge
		}
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil { // an event without its end is none
			if err == io.EOF {
				err = nil
			}
			return err
		}
		text := bytes.TrimRight(line, "\r\n")
		if begun {
			text, begun = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), false
		}
		if len(text) == 0 {
			if data != nil {
				if err := f(kind, data); err != nil {
					return err
				}
			}
			kind, data, size = "", nil, 0
		}
		name, value, _ := bytes.Cut(text, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			data = append(append(data, value...), '\n')
		case "": // a comment: a sign of life
			if data == nil {
				size = 0
			}
		}
		line = line[:0]
	}
}
