package changetrack

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// firstScan writes the results of a first scan to their final place during the comparison. Nothing
// is known yet, so nothing can be held, changed or deleted, and every kind of record comes in the
// order of its keys. One step makes it visible, with the head; until then it is not there. By
// batches the bench's scan-rdf4j takes 12 to 19 per cent longer, with a third more processor time.
//
// The times of its changes begin with the start of its writing.
type firstScan struct {
	load    kv.Load
	runs    map[byte]kv.Run // by kind
	finder  string
	seq     uint64 // of the next change
	at      time.Time
	records uint64
	err     error // of a run
}

// mayLoad tells whether a scan can be written so.
func (s *scan) mayLoad(ctx context.Context) (bool, error) {
	if s.o.Partial || s.dry || s.held != nil || s.o.Accept != "" || s.view.head.seq != 0 {
		return false, nil
	}
	for _, err := range s.view.r.Scan(ctx, []byte{kindState}, []byte{kindState + 1}) {
		return false, err
	}
	return true, nil
}

// beginFirst takes over the changes staged in memory. It does nothing for a store without loading.
func (s *scan) beginFirst() error {
	load, ok := kv.BeginLoad(s.l.store)
	if !ok {
		s.loads = false
		return nil
	}
	f := &firstScan{load: load, runs: map[byte]kv.Run{}, finder: s.o.Finder, seq: s.view.head.seq + 1, at: s.l.nextTime(s.view.head)}
	for _, kind := range []byte{kindState, kindLog, kindBlob} {
		f.runs[kind] = load.Run()
	}
	s.first = f
	err := f.add(s.changes.mem, s.changes.records)
	s.changes.discard()
	return err
}

// add writes n framed records.
func (f *firstScan) add(framed []byte, n uint64) error {
	for rec, err := range readRecords(bytes.NewReader(framed), n, "staged changes") {
		if err == nil {
			err = writeStaged(f, rec, f.seq, f.at.Add(time.Duration(f.records)*time.Microsecond), f.finder)
		}
		if err == nil {
			err = f.err
		}
		if err != nil {
			return fmt.Errorf("write change %d: %w", f.seq, err)
		}
		f.seq++
		f.records++
	}
	return nil
}

// Delete is for writeStaged, of states from before: there are none.
func (f *firstScan) Delete([]byte) {}

// Set is for writeStaged.
func (f *firstScan) Set(key, value []byte) {
	if f.err == nil {
		f.err = f.runs[key[0]].Set(key, value)
	}
}

// commitFirst makes a first scan visible. Readers get the snapshot from before
// until it is.
func (l *Log) commitFirst(ctx context.Context, f *firstScan, in *intent) error {
	head, err := readHead(in.Head)
	if err != nil {
		return err
	}
	r := f.load.Run()
	err = r.Set(headKey, in.Head)
	if err == nil {
		err = r.Set(lastScanKey, in.LastScan)
	}
	if err == nil {
		l.freeze(ctx)
		err = f.load.Commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("write changes: %w", err)
	}
	l.show(head)
	return nil
}
