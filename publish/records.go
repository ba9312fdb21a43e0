package publish

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/kept"
)

// recordVersion is the version of the JSON records and of parts.
const recordVersion = kept.Version

// genRecord is a generation and the basis of its documents.
type genRecord struct {
	Version  int       `json:"v"`
	Number   uint64    `json:"number"`
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	Base     string    `json:"base"`
	Prefix   string    `json:"prefix"`
	Former   []string  `json:"former,omitempty"` // prefixes before, the last one first
	Format   string    `json:"format"`
	// Inventory is the digest of its root, hexadecimal; "": there is none.
	Inventory string    `json:"inventory,omitempty"`
	StartSeq  uint64    `json:"start_seq"` // Change Lists begin after this change
	StartAt   time.Time `json:"start_at"`
	// Entries is the tag of the configuration at the measuring of the Resource List's entries
	// (entryMaker.measureTag).
	Entries string `json:"entries,omitempty"`
	// Alternates are the states of other sets in it.
	Alternates map[string]alternateRecord `json:"alternates,omitempty"`
}

// anewRecord is the rest when the lists begin anew: the highest numbers in use, and the new
// addresses.
type anewRecord struct {
	Version    int      `json:"v"`
	Generation uint64   `json:"generation"`
	List       uint64   `json:"list"`
	Base       string   `json:"base"`
	Prefix     string   `json:"prefix,omitempty"`
	Former     []string `json:"former,omitempty"`
}

// listRecord is a Change List. Until is zero while it is open.
type listRecord struct {
	Version int       `json:"v"`
	Number  uint64    `json:"number"`
	Through uint64    `json:"through,omitempty"` // number of the last of those merged into it; 0: none
	From    time.Time `json:"from"`
	Until   time.Time `json:"until,omitzero"`
	After   uint64    `json:"after"` // it holds the changes after this one
	Last    uint64    `json:"last"`  // to this one; After when it is empty
	First   time.Time `json:"first,omitzero"`
	LastAt  time.Time `json:"last_at,omitzero"`
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`
	// Packable is how many changes a package of the Change Dump would have.
	Packable int      `json:"packable"`
	Half     listHalf `json:"half,omitzero"`
}

// listHalf is the place in a list after half of its most entries; zero in a shorter list. Entries
// after it begin a chunk.
type listHalf struct {
	After   uint64    `json:"after"` // the last change before it
	At      time.Time `json:"at"`    // of the last change before it
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`
}

func (l *listRecord) closed() bool { return !l.Until.IsZero() }

// dumpRecord is a Resource Dump. Before is the replaced one. Its files stay for running downloads.
type dumpRecord struct {
	Version    int            `json:"v"`
	Sequence   uint64         `json:"sequence"`
	Generation uint64         `json:"generation"`
	At         time.Time      `json:"at"`
	Completed  time.Time      `json:"completed,omitzero"`
	Folder     string         `json:"folder"`
	Packages   []kept.Package `json:"packages"`
	Entries    int64          `json:"entries"`
	Files      int64          `json:"files,omitempty"` // of the set, left out of it
	Before     *dumpRecord    `json:"before,omitempty"`
}

func keyOf(kind byte, numbers ...uint64) []byte {
	k := []byte{kind}
	for _, n := range numbers {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

func setKeys(store kv.Store, set string) kv.Store {
	return kv.Prefix(store, append(append([]byte{'s'}, set...), 0))
}

// getJSON reads a record; false when there is none.
func getJSON(ctx context.Context, r kv.Reader, key []byte, v any) (bool, error) {
	data, err := r.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, decodeRecord(key, data, v)
}

func decodeRecord(key, data []byte, v any) error {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("record %q: %w", key, err)
	}
	if head.Version != recordVersion {
		return fmt.Errorf("record %q has version %d, this program knows %d: the state was written by another version of it", key, head.Version, recordVersion)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("record %q: %w", key, err)
	}
	return nil
}

func setJSON(b kv.Batch, key []byte, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b.Set(key, data)
	return nil
}
