package pgkv

import "time"

// SetBeat changes how often processes are heard, until the returned function is called. Stores are opened after it.
func SetBeat(d time.Duration) (back func()) {
	was := beat
	beat = d
	return func() { beat = was }
}

// Longest is the length of the longest key.
const Longest = longest

// SetLease changes the time of a lease, until the returned function is called. Stores are opened after it.
func SetLease(d time.Duration) (back func()) {
	was := lease
	lease = d
	return func() { lease = was }
}
