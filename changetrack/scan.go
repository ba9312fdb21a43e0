package changetrack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rsbridge/rsbridge/rdfres"
)

// ErrMoved reports changes in the log after ScanOptions.Same.
var ErrMoved = errors.New("the log has gone on meanwhile")

// ScanOptions of one comparison.
type ScanOptions struct {
	// Partial: the sequence holds the descriptions of some entities only (any order); one without
	// triples is a deletion. Otherwise it holds all, in the order of rdfres.EntityKey, and missing
	// entities are deleted.
	Partial   bool
	Finder    string        // "" is "scan"
	Format    rdfres.Format // of new representations; "" is JSON-LD
	MD5, SHA1 bool          // of new representations
	// MaxDeleteRatio holds a scan with more deletions than max(ratio × resources, 10), deletions of
	// everything, or the like share of triples. Orphan components do not count while their number
	// holds. Less than 0: no deletions are held.
	MaxDeleteRatio float64
	// Accept names the held candidate with accepted deletions, or "". ErrNoCandidate if another one
	// is held, or none.
	Accept string
	// Confirm asks the store a second time for missing entities (at most 500 at once) and returns
	// the descriptions of those still there. nil: the sequence is believed.
	Confirm func(ctx context.Context, entities []string) ([]rdfres.Description, error)
	// Fingerprint of the set's configuration; a change of it is refused
	// (ErrFingerprint, held) until accepted. "" is not compared.
	Fingerprint string
	// Same, if not nil, is a position of the log. The caller knows that everything is still in its
	// state: nothing is compared, and the sequence not read. ErrMoved if the log has gone on since.
	Same *uint64
	// Failed entities keep their known states; they are no deletions. It is called after the end of
	// the sequence, for entities missing in it. The caller knows the reason: they are not among the
	// Failures of the result.
	Failed func(entity string) bool
	// Extra is called after the end of the sequence; its result (JSON, such as the coverage) is
	// stored with the scan's. May be nil.
	Extra func() json.RawMessage
}

func (o *ScanOptions) defaults() {
	o.Finder, o.Format = cmp.Or(o.Finder, "scan"), cmp.Or(o.Format, rdfres.JSONLD)
}

// Held is a scan waiting for a person. The id is made of the deletions: the same deletions have the
// same id.
type Held struct {
	ID        string    `json:"id"`
	Reason    string    `json:"reason"`
	Deletions int64     `json:"deletions"`
	Of        int64     `json:"of"` // present resources
	Time      time.Time `json:"time"`
	// Configuration: held because the configuration has changed.
	Configuration bool `json:"configuration,omitempty"`
	// Addresses: only new addresses wait, set by the publisher; scans go on.
	Addresses bool `json:"addresses,omitempty"`
	// Files: only deletions of files wait, set by the follower of files.
	Files bool `json:"files,omitempty"`
}

// OfScan tells whether what the last scan found is held. nil: nothing is.
func (h *Held) OfScan() bool { return h != nil && !h.Files && !h.Addresses }

// ScanResult is the result of a scan. Held nil: it is in the log. Otherwise nothing of it is:
// Created, Updated and Deleted would be its changes, and Resources and Triples are the present
// ones.
type ScanResult struct {
	Resources int64           `json:"resources"`
	Created   int64           `json:"created"`
	Updated   int64           `json:"updated"`
	Deleted   int64           `json:"deleted"`
	Accepted  int64           `json:"accepted,omitempty"` // of the deleted: those of the accepted candidate; MaxDeleteRatio allows the others
	Unchanged int64           `json:"unchanged"`
	Failed    int64           `json:"failed"`
	Triples   int64           `json:"triples"`            // of all current descriptions, doubles between descriptions counted
	First     uint64          `json:"first,omitempty"`    // sequences added; 0, 0 for none
	Last      uint64          `json:"last,omitempty"`     //
	Fallback  int64           `json:"fallback,omitempty"` // new representations written as N-Triples because the format could not carry them
	Held      *Held           `json:"held,omitempty"`
	Failures  []Failure       `json:"failures,omitempty"` // at most 100 named
	Extra     json.RawMessage `json:"extra,omitempty"`    // of ScanOptions.Extra
}

// Failure names an entity whose description could not be represented, or not read
// (ScanOptions.Failed).
type Failure struct {
	Entity string `json:"entity"`
	Err    string `json:"error"`
}

const maxFailures = 100

func (r *ScanResult) fail(f Failure) {
	r.Failed++
	if len(r.Failures) < maxFailures {
		r.Failures = append(r.Failures, f)
	}
}

// lastScan is the record of the last scan, as JSON.
type lastScan struct {
	Version int        `json:"version"`
	Time    time.Time  `json:"time"`
	Result  ScanResult `json:"result"`
}

func readLastScan(b []byte) (*lastScan, error) {
	var s lastScan
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("last scan cannot be read: %w: %w", err, errDamaged)
	}
	return &s, nil
}

// Scan compares found descriptions with the known states and appends the differences to the log in
// one transaction: staged in a file, made durable, then made visible. A crash at any moment leaves
// all of it or nothing. An error from found changes nothing, and neither does the end of ctx before
// the commit begins; the commit itself is not interrupted. Scan reads the triples of a description
// after asking for the next one: they must not change.
//
// Deletions come last in the log. An entity that cannot be represented, not even as N-Triples,
// keeps its known state and is listed in Failures; the others go on. After an error from the store
// nobody knows whether the scan is in the log; the next writer, or Open, finds out and finishes it.
func (l *Log) Scan(ctx context.Context, found iter.Seq2[rdfres.Description, error], o ScanOptions) (ScanResult, error) {
	o.defaults()
	if err := l.lock(ctx); err != nil {
		return ScanResult{}, fmt.Errorf("scan set %s: %w", l.name, err)
	}
	defer l.unlock()
	s := &scan{l: l, o: o}
	defer s.close()
	if err := s.run(ctx, found); err != nil {
		return ScanResult{}, fmt.Errorf("scan set %s: %w", l.name, err)
	}
	return s.res, nil
}

// scan is one comparison under way.
type scan struct {
	l    *Log
	o    ScanOptions
	view *View
	held *heldRecord // the present candidate
	dry  bool        // the configuration is not accepted: count, stage deletions only
	res  ScanResult
	sum  sums

	loads   bool        // first may be begun
	first   *firstScan  // takes the records instead of changes, if this is possible and they are many
	changes *spool      // staged records
	free    chan []byte // buffers of collected jobs
	absent  *spool      // state records of missing entities
}

// sums are sums of the comparison beside the result.
type sums struct {
	triples        int64 // current triples afterwards minus before
	components     int64 // the same of orphan components
	lost           int64 // triples lost from remaining descriptions
	deletedTriples int64 // with their entities, components left out
	componentsGone int64 // orphan components deleted
	componentsGain int64 // and created
	componentLost  int64 // triples of the ones
	componentFound int64 // and of the others
	allowed        int64 // deletions of an accepted candidate, without components
	allowedTriples int64

	allowedComponents int64 // its deletions of orphan components
}

func (s *scan) close() {
	if s.first != nil {
		if err := s.first.load.Close(); err != nil {
			s.l.t.o.Logger.Warn("tables of a scan stay on disk", "set", s.l.name, "error", err)
		}
	}
	if s.changes != nil {
		s.changes.discard()
		s.absent.discard()
	}
	if s.view != nil {
		s.view.Close()
	}
}

func (s *scan) run(ctx context.Context, found iter.Seq2[rdfres.Description, error]) error {
	s.view = s.l.View(ctx)
	if s.view.err != nil {
		return s.view.err
	}
	if err := s.checkAccept(ctx); err != nil {
		return err
	}
	newSpool := func() *spool {
		return &spool{dir: s.l.t.o.Dir, name: fmt.Sprintf("scan-%d-*.stage", s.l.id), limit: s.l.t.o.stageBytes}
	}
	s.changes, s.absent = newSpool(), newSpool()
	if n := s.o.Same; n != nil {
		if s.view.head.seq != *n || !s.view.head.baseline {
			return fmt.Errorf("%w: it is at %d, and what was read was the state at %d", ErrMoved, s.view.head.seq, *n)
		}
		s.res.Unchanged = s.view.head.resources
	} else if err := s.find(ctx, found); err != nil {
		return err
	}
	if s.o.Extra != nil {
		s.res.Extra = s.o.Extra()
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	reason, configuration, err := s.reasonToHold(ctx)
	if err != nil {
		return err
	}
	if reason != "" {
		return s.hold(ctx, reason, configuration)
	}
	return s.commit(ctx)
}

func (s *scan) find(ctx context.Context, found iter.Seq2[rdfres.Description, error]) error {
	var err error
	if s.loads, err = s.mayLoad(ctx); err != nil {
		return err
	}
	if err := s.compare(ctx, found); err != nil {
		return err
	}
	return s.confirm(ctx)
}

// commit gives the changes their numbers and times.
func (s *scan) commit(ctx context.Context) error {
	head := s.view.head
	at, n := s.l.nextTime(head), s.changes.records
	if s.first != nil {
		at, n = s.first.at, s.first.records
	}
	in := intent{
		Version: recordVersion, Records: n, First: head.seq + 1, Time: at.UnixMicro(),
		Finder: s.o.Finder, Clear: !s.o.Partial || s.o.Accept != "",
	}
	s.res.Accepted = s.sum.allowed + s.sum.allowedComponents
	head.resources += s.res.Created - s.res.Deleted
	head.components += s.sum.components
	head.triples += s.sum.triples
	if n > 0 {
		s.res.First, s.res.Last = head.seq+1, head.seq+n
		head.seq += n
		head.time = at.Add(time.Duration(n-1) * time.Microsecond)
	}
	if !s.o.Partial {
		if s.o.Fingerprint != "" {
			head.fingerprint = s.o.Fingerprint
		}
		if !head.baseline {
			head.baseline, head.baseSeq, head.baseTime = true, head.seq, head.time
			if head.seq == 0 {
				head.baseTime = at
			}
		}
	}
	s.res.Resources, s.res.Triples = head.resources, head.triples
	in.Head = putHead(nil, &head)
	record, err := json.Marshal(lastScan{recordVersion, at, s.res})
	if err != nil {
		return fmt.Errorf("record the scan: %w", err)
	}
	in.LastScan = record
	if s.first != nil {
		return s.l.commitFirst(ctx, s.first, &in)
	}
	return s.l.commit(ctx, s.changes, in)
}
