// Package hub distributes topics to their subscribers (W3C WebSub).
package hub

import "context"

// Position is the place of a subscriber in a topic: its last payload ended at Told, and nothing
// between Told and Seen was for it.
type Position struct{ Told, Seen uint64 }

// Payload is a message for a subscriber; an empty body is none. At is the position afterwards.
type Payload struct {
	Body []byte
	At   Position
}

// Topic is an ordered stream of payloads.
type Topic interface {
	Head(ctx context.Context) (Position, error)
	// Next is everything after a position, or the first payload of it.
	Next(ctx context.Context, at Position) (Payload, error)
	// Changed is closed at the next news.
	Changed() <-chan struct{}
}
