// Package history keeps a week of samples of sets and mirrors in the state, for graphs: how far
// each is behind, its changes and its runs. A sample is of a minute at first. After some hours it
// becomes a part of ten minutes, after two days of an hour: a set or mirror takes about 6 kB.
package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rsbridge/rsbridge/internal/kv"
)

// Sample is what happened to a set or mirror in a span of time.
type Sample struct {
	Time   time.Time `json:"time"` // its beginning
	Span   time.Duration
	Behind *float64 `json:"behind"` // the longest in the span, in seconds; null: not known
	Counts
}

// Counts of a span.
type Counts struct {
	Created int64   `json:"created"`
	Updated int64   `json:"updated"`
	Deleted int64   `json:"deleted"`
	Runs    int64   `json:"runs"` // ended
	Failed  int64   `json:"failed"`
	Longest float64 `json:"longest"` // run, in seconds
}

func (c *Counts) add(d Counts) {
	c.Created, c.Updated, c.Deleted = c.Created+d.Created, c.Updated+d.Updated, c.Deleted+d.Deleted
	c.Runs, c.Failed, c.Longest = c.Runs+d.Runs, c.Failed+d.Failed, max(c.Longest, d.Longest)
}

func (s *Sample) add(t Sample) {
	s.Counts.add(t.Counts)
	if t.Behind != nil && (s.Behind == nil || *s.Behind < *t.Behind) {
		s.Behind = t.Behind
	}
}

// Kept is the age of the oldest samples.
const Kept = 7 * 24 * time.Hour

// spans are the lengths of samples by age, the oldest first.
var spans = []struct{ from, span time.Duration }{{48 * time.Hour, time.Hour}, {3 * time.Hour, 10 * time.Minute}, {0, time.Minute}}

// Store has the samples.
type Store struct{ kv kv.Store }

// New keeps the samples in a key space of their own.
func New(store kv.Store) Store { return Store{store} }

// A record has the samples of an hour of a subject. Its key is the subject, a zero, and the hour since 1970 in
// four bytes. Its value is the version, the minutes of a sample, and the samples: the number of
// the span in the hour and the values, all uvarints.
const version = 1

func keyOf(subject string, hour int64) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(subject), 0), uint32(hour))
}

func hourOf(t time.Time) int64 { return t.Unix() / 3600 }

var errDamaged = errors.New("the record is damaged or of a newer version")

// tenths are how seconds are kept.
func tenths(seconds float64) uint64 {
	return uint64(min(max(math.Round(seconds*10), 0), 1<<50))
}

// encode merges the samples of an hour by spans.
func encode(samples []Sample, span time.Duration) []byte {
	out := []byte{version, byte(span / time.Minute)}
	for i, slots := 0, int64(time.Hour/span); i < len(samples); {
		slot := samples[i].Time.Unix() % 3600 / int64(span/time.Second)
		var s Sample
		for ; i < len(samples) && samples[i].Time.Unix()%3600/int64(span/time.Second) == slot; i++ {
			s.add(samples[i])
		}
		behind := uint64(0)
		if s.Behind != nil {
			behind = 1 + tenths(*s.Behind)
		}
		for _, n := range []uint64{uint64(slot % slots), behind, uint64(s.Created), uint64(s.Updated), uint64(s.Deleted), uint64(s.Runs), uint64(s.Failed), tenths(s.Longest)} {
			out = binary.AppendUvarint(out, n)
		}
	}
	return out
}

func decode(hour int64, raw []byte) (out []Sample, err error) {
	if len(raw) < 2 || raw[0] != version || raw[1] == 0 {
		return nil, errDamaged
	}
	span := time.Duration(raw[1]) * time.Minute
	for rest := raw[2:]; len(rest) > 0; {
		var n [8]uint64
		for i := range n {
			v, size := binary.Uvarint(rest)
			if size <= 0 {
				return nil, errDamaged
			}
			n[i], rest = v, rest[size:]
		}
		s := Sample{Time: time.Unix(hour*3600, 0).UTC().Add(time.Duration(n[0]) * span), Span: span,
			Counts: Counts{int64(n[2]), int64(n[3]), int64(n[4]), int64(n[5]), int64(n[6]), float64(n[7]) / 10}}
		if n[1] > 0 {
			behind := float64(n[1]-1) / 10
			s.Behind = &behind
		}
		out = append(out, s)
	}
	return out, nil
}

// Add adds samples of the minute of t, by subject, at once.
func (s Store) Add(ctx context.Context, t time.Time, samples map[string]Sample) error {
	b := s.kv.Batch()
	defer b.Close()
	for subject, sample := range samples {
		sample.Time = t.Truncate(time.Minute)
		key := keyOf(subject, hourOf(t))
		hour, err := s.hour(ctx, key)
		if err != nil {
			return fmt.Errorf("samples of %s: %w", subject, err)
		}
		if n := len(hour); n > 0 && hour[n-1].Time.After(sample.Time) {
			sample.Time = hour[n-1].Time // the clock went back
		}
		b.Set(key, encode(append(hour, sample), time.Minute))
	}
	return b.Commit(ctx, false)
}

func (s Store) hour(ctx context.Context, key []byte) ([]Sample, error) {
	raw, err := s.kv.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	samples, err := decode(int64(binary.BigEndian.Uint32(key[len(key)-4:])), raw)
	if errors.Is(err, errDamaged) { // the rest goes on
		return nil, nil
	}
	return samples, err
}

// Samples are those of a subject that ended after a time, oldest first.
func (s Store) Samples(ctx context.Context, subject string, after time.Time) (out []Sample, err error) {
	for p, err := range s.kv.Scan(ctx, keyOf(subject, max(hourOf(after), 0)), append([]byte(subject), 1)) {
		if err != nil {
			return nil, fmt.Errorf("samples of %s: %w", subject, err)
		}
		hour, err := decode(int64(binary.BigEndian.Uint32(p.Key[len(p.Key)-4:])), p.Value)
		if err != nil {
			continue // the rest is of use
		}
		for _, sample := range hour {
			if sample.Time.Add(sample.Span).After(after) {
				out = append(out, sample)
			}
		}
	}
	return out, nil
}

// Move gives the samples of a subject to another one, with the commit of a batch; to "": they are
// dropped. Those of the other one are dropped in any case.
func (s Store) Move(ctx context.Context, batch kv.Batch, from, to string) error {
	own := kv.Join(s.kv, batch)
	records := func(subject string) (lo, hi []byte) { return append([]byte(subject), 0), append([]byte(subject), 1) }
	lo, hi := records(from)
	if to != "" {
		own.DeleteRange(records(to))
		for p, err := range s.kv.Scan(ctx, lo, hi) {
			if err != nil {
				return fmt.Errorf("samples of %s: %w", from, err)
			}
			own.Set(append([]byte(to), p.Key[len(from):]...), p.Value)
		}
	}
	own.DeleteRange(lo, hi)
	return nil
}

// Tidy makes old samples coarser, and drops those older than a week.
func (s Store) Tidy(ctx context.Context, now time.Time) error {
	b := s.kv.Batch()
	defer b.Close()
	for p, err := range s.kv.Scan(ctx, []byte{1}, nil) {
		if err != nil {
			return fmt.Errorf("samples: %w", err)
		}
		if len(p.Key) < 5 {
			continue
		}
		hour := int64(binary.BigEndian.Uint32(p.Key[len(p.Key)-4:]))
		age := now.Sub(time.Unix((hour+1)*3600, 0))
		samples, err := decode(hour, p.Value)
		if err != nil || age > Kept {
			b.Delete(p.Key)
			continue
		}
		for _, as := range spans {
			if age >= as.from {
				if coarser := encode(samples, as.span); p.Value[1] < byte(as.span/time.Minute) && !bytes.Equal(coarser, p.Value) {
					b.Set(p.Key, coarser)
				}
				break
			}
		}
	}
	return b.Commit(ctx, false)
}
