package changetrack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Many staged changes are in a file of this process while it compares. For a commit they go into a store that other
// processes write too: whoever leads next must finish the commit.

// stagePart is the size of a record with staged changes.
const stagePart = 256 << 10

// putStage copies the staged changes into the store. They are durable with the intent.
func (l *Log) putStage(ctx context.Context, sp *spool) error {
	if err := sp.w.Flush(); err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	if _, err := sp.file.Seek(fileHeader, io.SeekStart); err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	b := l.store.Batch()
	defer b.Close()
	b.DeleteRange([]byte{kindStage}, []byte{kindStage + 1})
	part := make([]byte, stagePart)
	for i := uint64(0); ; i++ {
		n, err := io.ReadFull(sp.file, part)
		if n > 0 {
			b.Set(seqKey(kindStage, i), part[:n])
		}
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fmt.Errorf("stage changes: %w", err)
		}
		if last || b.Size() >= l.t.o.batchBytes {
			if err := b.Commit(ctx, false); err != nil {
				return fmt.Errorf("stage changes: %w", err)
			}
		}
		if last {
			return nil
		}
	}
}

// dropStage removes staged changes without an intent.
func (l *Log) dropStage(ctx context.Context) error {
	for _, err := range l.store.Scan(ctx, []byte{kindStage}, []byte{kindStage + 1}) {
		if err != nil {
			return err
		}
		b := l.store.Batch()
		defer b.Close()
		b.DeleteRange([]byte{kindStage}, []byte{kindStage + 1})
		return b.Commit(ctx, false)
	}
	return nil
}

// storedStage yields the n staged changes in the store.
func (l *Log) storedStage(ctx context.Context, n uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		next, stop := iter.Pull2(l.store.Scan(ctx, []byte{kindStage}, []byte{kindStage + 1}))
		defer stop()
		readRecords(&stageReader{next: next}, n, "staged changes")(yield)
	}
}

// stageReader reads the parts one behind the other.
type stageReader struct {
	next func() (kv.Pair, error, bool)
	part []byte // the rest of one, valid until next
}

func (r *stageReader) Read(p []byte) (int, error) {
	for len(r.part) == 0 {
		pair, err, ok := r.next()
		if !ok {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.part = pair.Value
	}
	n := copy(p, r.part)
	r.part = r.part[n:]
	return n, nil
}
