package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// socket hears a channel of notification 0.8: each message is a document.
func (s *Subscriber) socket(ctx context.Context, address string, h *hearing) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opening, done := context.WithTimeoutCause(ctx, openWithin, errQuiet)
	conn, res, err := websocket.Dial(opening, address, &websocket.DialOptions{HTTPClient: s.client.Plain()})
	done()
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return fmt.Errorf("%s, and no socket", res.Status)
		}
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(mostBytes)
	h.opened()
	beating := make(chan struct{})
	go func() { // ends with ctx
		defer close(beating)
		pulse := time.NewTicker(quiet / 2)
		defer pulse.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pulse.C:
			}
			within, end := context.WithTimeout(ctx, quiet/2)
			err := conn.Ping(within)
			end()
			if err != nil {
				cancel(errQuiet)
				return
			}
		}
	}()
	defer func() { cancel(nil); <-beating }()
	for {
		_, message, err := conn.Reader(ctx)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(message)
		}
		switch {
		case err == nil:
			h.take(body)
			continue
		case errors.Is(err, websocket.ErrMessageTooBig):
			return errTooLarge
		case context.Cause(ctx) != nil:
			conn.Close(websocket.StatusGoingAway, "")
			return context.Cause(ctx)
		}
		return err
	}
}
