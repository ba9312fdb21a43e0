package changetrack

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
)

// Kind of a change.
type Kind string

const (
	Created Kind = "created"
	Updated Kind = "updated"
	Deleted Kind = "deleted"
)

// Version is one state of an entity.
type Version struct {
	Sequence uint64 // of the change that made it
	Time     time.Time
	Graph    rdfres.Digest // graph digest
	Format   rdfres.Format // of the representation
	Fixity   rdfres.Fixity
	Triples  int
}

// Change is one entry of the log. Before is nil for created, After for deleted.
type Change struct {
	Sequence uint64
	Time     time.Time // strictly increasing, whole microseconds, UTC
	Kind     Kind
	Entity   string
	Before   *Version
	After    *Version
	Finder   string // how it was found: "scan", "hint", ...
}

// State is what is known of an entity now: its current version, or its end.
type State struct {
	Entity  string
	Current *Version // nil: deleted
	Deleted *Change  // the deletion, when it is deleted and within retention
	Changes int      // how often it changed, for changefreq
	First   time.Time
}

// Blob is a representation as it is kept: raw deflate (RFC 1951), with what ZIP
// and gzip want to know, so that it is never packed again.
type Blob struct {
	Deflated []byte
	CRC32    uint32
	Length   int64
}

// Bytes unpacks, checks length and CRC.
func (b Blob) Bytes() ([]byte, error) { panic("stub") }

// Options of Open.
type Options struct {
	Dir    string           // folder for staging files
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: silent
}

// Tracker keeps the logs of all sets of one state.
type Tracker struct{}

// Open reads the state and finishes what a crash interrupted.
func Open(ctx context.Context, store kv.Store, o Options) (*Tracker, error) { panic("stub") }
func (t *Tracker) Log(set string) (*Log, error)                             { panic("stub") } // opened or made; the same *Log for the same name
func (t *Tracker) Close() error                                             { panic("stub") }

// Log is the log and the states of one set. One writer at a time; readers see
// whole runs: what a run adds becomes visible at once.
type Log struct{}

// ScanOptions of one comparison.
type ScanOptions struct {
	// Partial: the sequence holds the descriptions of some entities only (any
	// order); one without triples is a deletion. Otherwise it holds all, in the
	// order of rdfres.EntityKey, and what is not in it is gone.
	Partial   bool
	Finder    string
	Format    rdfres.Format // of new representations
	MD5, SHA1 bool
	// MaxDeleteRatio holds a scan that would delete more than
	// max(ratio × resources, 10), everything, or the like share of triples.
	// Orphan components do not count while their number holds.
	MaxDeleteRatio float64
	// Accept names the held candidate whose deletions are allowed, or "".
	Accept string
	// Confirm asks the store a second time for entities that would be deleted
	// and returns the descriptions of those that are still there.
	Confirm func(ctx context.Context, entities []string) ([]rdfres.Description, error)
	// Fingerprint of the set's configuration; a change of it is refused
	// (ErrFingerprint, held) until accepted.
	Fingerprint string
	// Failed entities keep what is known of them; they are no deletions.
	Failed   func(entity string) bool
	Progress func(done, total int64)
}

// Held is a scan that waits for a person.
type Held struct {
	ID        string    `json:"id"`
	Reason    string    `json:"reason"`
	Deletions int64     `json:"deletions"`
	Time      time.Time `json:"time"`
}

// ScanResult tells what a scan found. Held nil: it is in the log.
type ScanResult struct {
	Resources, Created, Updated, Deleted, Unchanged, Failed int64
	Triples                                                 int64  // of all current descriptions, doubles between descriptions counted
	First, Last                                             uint64 // sequences added; 0, 0 for none
	Fallback                                                int64  // representations written as N-Triples because the format could not carry them
	Held                                                    *Held
	Failures                                                []Failure // at most 100 named
}

// Failure names an entity whose description could not be represented.
type Failure struct {
	Entity string
	Err    string
}

// Scan compares what was found with what is known and appends the differences
// to the log in one transaction: staged in a file, made durable, then made
// visible; a crash at any moment leaves all of it or nothing. An error from
// found changes nothing.
func (l *Log) Scan(ctx context.Context, found iter.Seq2[rdfres.Description, error], o ScanOptions) (ScanResult, error) {
	panic("stub")
}

// View is one consistent state of the log. Close it.
type View struct{}

func (l *Log) View() *View                                      { panic("stub") }
func (v *View) Close() error                                    { panic("stub") }
func (v *View) Head() (seq uint64, t time.Time)                 { panic("stub") } // last change; 0 and zero time when empty
func (v *View) Tail() (seq uint64, t time.Time)                 { panic("stub") } // the log is complete after this sequence and time (retention); 0 at first
func (v *View) Resources() int64                                { panic("stub") } // current ones
func (v *View) Triples() int64                                  { panic("stub") }
func (v *View) BaselineEnd() (seq uint64, t time.Time, ok bool) { panic("stub") } // end of the first complete scan
func (v *View) Held() *Held                                     { panic("stub") }
func (v *View) LastScan() (t time.Time, res *ScanResult)        { panic("stub") }

// Changes yields changes with after < sequence, in order.
func (v *View) Changes(after uint64) iter.Seq2[Change, error] { panic("stub") }

// SequenceAt is the last sequence with time <= t.
func (v *View) SequenceAt(t time.Time) (uint64, error) { panic("stub") }

// Entity gives the state of one entity; kv.ErrNotFound if it was never known.
func (v *View) Entity(iri string) (State, error) { panic("stub") }

// EntityByKey finds by rdfres.EntityKey.
func (v *View) EntityByKey(k rdfres.Digest) (State, error) { panic("stub") }

// Current yields current entities with lo <= EntityKey, and < hi unless hi is zero, in that order.
func (v *View) Current(lo, hi rdfres.Digest) iter.Seq2[State, error] { panic("stub") }

// History yields the changes of one entity within retention, oldest first.
func (v *View) History(iri string) iter.Seq2[Change, error] { panic("stub") }

// Representation gives the bytes of a version that is current or within retention.
func (v *View) Representation(iri string, sequence uint64) (Blob, error) { panic("stub") }

// Head is View().Head() without the snapshot.
func (l *Log) Head() (uint64, time.Time) { panic("stub") }

// Wait returns when the head is beyond after, or ctx ends.
func (l *Log) Wait(ctx context.Context, after uint64) error { panic("stub") }

// Retain drops changes before changesBefore and versions that ended before
// versionsBefore; current versions and their change stay.
func (l *Log) Retain(ctx context.Context, changesBefore, versionsBefore time.Time) (dropped int64, err error) {
	panic("stub")
}

// Check verifies the invariants of the records: sequences without gaps, times
// increasing, each state equal to the replay of the log, each representation
// there with its hash. For tests and for `rsbridge check`.
func (l *Log) Check(ctx context.Context) error { panic("stub") }
