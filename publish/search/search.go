// Package search keeps the names of a set's entities in alphabetic order: for pages with a search
// box and an alphabet.
//
// Names are labels and local names, without case and accents. Each of their words leads to the
// entity, so a search by the beginning of a word reads a few neighbouring keys, in a set of any
// size. A capital inside a word, and a digit beside a letter, begin words too: hasPart2 is found by
// "part" and "2". The index follows the log: it reads each present description once, in the background. A
// set of more than 200,000 resources is read from the first question on.
//
// # Records
//
//	M            the position in the log, JSON (position)
//	E KEY        the names of an entity, separated by zero bytes; KEY is its rdfres.EntityKey
//	N a NAME 0 KEY   the alphabet: NAME is folded and cut
//	N w WORDS 0 KEY  the search: WORDS are a name from the start of one of its words on
package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

const (
	version    = 2
	nameBytes  = 96      // of a folded name in a key
	mostNames  = 12      // of an entity
	mostWords  = 8       // of a name; as many again inside of its words
	mostBytes  = 1 << 20 // of a description read for its labels
	batchBytes = 2 << 20
	mostSteps  = 5000    // keys read for an answer
	mostMade   = 200_000 // resources of a set read before the first question
	keyBytes   = len(rdfres.Digest{})
)

// position is how far the index is.
type position struct {
	Version  int    `json:"v"`
	Sequence uint64 `json:"sequence"`       // changes up to here are in it
	Next     string `json:"next,omitempty"` // key of the next entity of the first reading, hexadecimal
	Done     int64  `json:"done,omitempty"` // entities of the first reading
	Whole    bool   `json:"whole"`          // the first reading has ended
}

// Index is the index of one set. Safe for concurrent use.
type Index struct {
	records kv.Store
	log     *changetrack.Log
	ctx     context.Context
	stop    context.CancelFunc

	mu      sync.Mutex // guards all below
	running chan struct{}
	again   bool
	err     error
}

// New is the index of a log. records is the key space of the set.
func New(records kv.Store, log *changetrack.Log) *Index {
	ctx, stop := context.WithCancel(context.Background())
	return &Index{records: records, log: log, ctx: ctx, stop: stop}
}

// Close ends the work and waits for it.
func (x *Index) Close() {
	x.stop()
	x.mu.Lock()
	running := x.running
	x.mu.Unlock()
	if running != nil {
		<-running
	}
}

// Follow brings an existing index to the end of the log, in the background.
func (x *Index) Follow(ctx context.Context) error {
	switch _, err := x.position(ctx); {
	case errors.Is(err, kv.ErrNotFound): // nobody has asked yet
		return nil
	case err != nil:
		return err
	}
	x.begin()
	return nil
}

// Make begins the index of a set before anybody asks, in the background. A large set waits for the first question:
// its index takes as much room as its log.
func (x *Index) Make(ctx context.Context) error {
	view := x.log.View(ctx)
	n := view.Resources()
	if err := errors.Join(view.Err(), view.Close()); err != nil {
		return err
	}
	if n > mostMade {
		return nil
	}
	x.begin()
	return nil
}

// begin starts a run, or lets the running one look again; the channel is closed at its end.
func (x *Index) begin() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running != nil {
		x.again = true
		return x.running
	}
	done := make(chan struct{})
	if x.ctx.Err() != nil { // it was closed
		close(done)
		return done
	}
	x.running, x.again = done, false
	go func() {
		for {
			err := x.update(x.ctx)
			x.mu.Lock()
			if x.err = err; err != nil || !x.again {
				x.running = nil
				close(done)
				x.mu.Unlock()
				return
			}
			x.again = false
			x.mu.Unlock()
		}
	}()
	return done
}

// Ready brings the index to the end of the log and waits for it as long as ctx lasts. done counts the entities
// of an unfinished first reading.
func (x *Index) Ready(ctx context.Context) (done int64, whole bool, err error) {
	head, _ := x.log.Head()
	at, err := x.position(ctx)
	if err == nil && at.Whole && at.Sequence == head {
		return at.Done, true, nil
	}
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return 0, false, err
	}
	select {
	case <-x.begin():
	case <-ctx.Done():
	}
	x.mu.Lock()
	err = x.err
	x.mu.Unlock()
	if err != nil {
		return 0, false, err
	}
	at, err = x.position(context.WithoutCancel(ctx))
	if errors.Is(err, kv.ErrNotFound) {
		return 0, false, nil
	}
	return at.Done, at.Whole, err
}

func (x *Index) position(ctx context.Context) (at position, err error) {
	data, err := x.records.Get(ctx, []byte("M"))
	if err != nil {
		return at, err
	}
	if err := json.Unmarshal(data, &at); err != nil {
		return at, fmt.Errorf("position of the index of names: %w", err)
	}
	return at, nil
}

// update reads the changes since the position, or all present entities the first time.
func (x *Index) update(ctx context.Context) error {
	view := x.log.View(ctx)
	defer view.Close()
	if err := view.Err(); err != nil {
		return err
	}
	at, err := x.position(ctx)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	head, _ := view.Head()
	tail, _ := view.Tail()
	w := &writer{index: x, view: view, batch: x.records.Batch(), at: at}
	defer w.batch.Close()
	if at.Version != version || tail > at.Sequence || head < at.Sequence { // there is none, or it does not follow
		w.batch.DeleteRange([]byte("E"), []byte("F"))
		w.batch.DeleteRange([]byte("N"), []byte("O"))
		w.at = position{Version: version, Sequence: head}
		if err := w.commit(ctx); err != nil {
			return err
		}
	}
	if !w.at.Whole {
		if err := w.whole(ctx); err != nil {
			return err
		}
	}
	seen := map[rdfres.Digest]bool{}
	var changed []string
	for c, err := range view.Changes(ctx, w.at.Sequence) {
		if err != nil {
			return err
		}
		if key := rdfres.EntityKey(c.Entity); c.OfEntity() && !seen[key] {
			seen[key] = true
			changed = append(changed, c.Entity)
		}
		if len(changed) == readEntities {
			if err := w.putPresent(ctx, changed); err != nil {
				return err
			}
			changed = changed[:0]
		}
		w.at.Sequence = c.Sequence
		if len(changed) == 0 && (w.batch.Size() >= batchBytes || len(seen) >= 100000) {
			clear(seen) // put reads what is committed
			if err := w.commit(ctx); err != nil {
				return err
			}
		}
	}
	if err := w.putPresent(ctx, changed); err != nil {
		return err
	}
	if w.at.Sequence = max(w.at.Sequence, head); w.at == at {
		return nil
	}
	return w.commit(ctx)
}

// writer brings entities into the index.
type writer struct {
	index *Index
	view  *changetrack.View
	batch kv.Batch
	at    position
}

func (w *writer) commit(ctx context.Context) error {
	data, err := json.Marshal(&w.at)
	if err != nil {
		return err
	}
	w.batch.Set([]byte("M"), data)
	return w.batch.Commit(ctx, false)
}

// whole reads the present entities, from the one after the last reading on.
func (w *writer) whole(ctx context.Context) error {
	from, err := rdfres.ParseDigest(w.at.Next)
	if err != nil {
		from = rdfres.Digest{}
	}
	var some []present
	for st, err := range w.view.Current(ctx, from, rdfres.Digest{}) {
		if err != nil {
			return err
		}
		if len(some) == readEntities {
			if err := w.put(ctx, some); err != nil {
				return err
			}
			w.at.Done += int64(len(some))
			some = some[:0]
			if w.batch.Size() >= batchBytes {
				w.at.Next = rdfres.EntityKey(st.Entity).String()
				if err := w.commit(ctx); err != nil {
					return err
				}
			}
		}
		some = append(some, present{st.Entity, st.Current})
	}
	if err := w.put(ctx, some); err != nil {
		return err
	}
	w.at.Done += int64(len(some))
	w.at.Whole, w.at.Next = true, ""
	return w.commit(ctx)
}

func entityKey(key rdfres.Digest) []byte { return append([]byte("E"), key[:]...) }

// Entities and their representations are read so many at once, of so many bytes.
const (
	readEntities = 100
	readBytes    = 4 << 20
)

// present is an entity with its present version, nil for a deleted or unknown one.
type present struct {
	entity  string
	version *changetrack.Version
}

// length is of the representation read for names.
func (p *present) length() int64 {
	if p.version == nil || p.version.Fixity.Length > mostBytes {
		return 0
	}
	return p.version.Fixity.Length
}

// putPresent replaces the names of entities as they are now.
func (w *writer) putPresent(ctx context.Context, entities []string) error {
	versions, err := w.view.Versions(ctx, entities)
	if err != nil {
		return err
	}
	some := make([]present, len(entities))
	for i, entity := range entities {
		some[i] = present{entity, versions[i]}
	}
	return w.put(ctx, some)
}

// put replaces the names of entities; one without a present version has none.
func (w *writer) put(ctx context.Context, some []present) error {
	for len(some) > 0 {
		n := 1
		for size := some[0].length(); n < len(some) && size+some[n].length() <= readBytes; n++ {
			size += some[n].length()
		}
		var refs []changetrack.Ref
		var records [][]byte
		for _, p := range some[:n] {
			if p.length() > 0 {
				refs = append(refs, changetrack.Ref{Entity: p.entity, Sequence: p.version.Sequence})
			}
			records = append(records, entityKey(rdfres.EntityKey(p.entity)))
		}
		blobs, err := w.view.Representations(ctx, refs)
		if err != nil {
			return err
		}
		olds, err := kv.GetMany(ctx, w.index.records, records)
		if err != nil {
			return err
		}
		for i, p := range some[:n] {
			var blob changetrack.Blob
			if p.length() > 0 {
				blob, blobs = blobs[0], blobs[1:]
			}
			if err := w.putOne(&p, &blob, olds[i]); err != nil {
				return err
			}
		}
		some = some[n:]
	}
	return nil
}

// putOne replaces the recorded names of an entity, nil for none.
func (w *writer) putOne(p *present, blob *changetrack.Blob, old []byte) error {
	var names []string
	if p.version != nil {
		var err error
		if names, err = namesOf(p, blob); err != nil {
			return err
		}
	}
	key := rdfres.EntityKey(p.entity)
	if old != nil {
		if string(old) == strings.Join(names, "\x00") {
			return nil
		}
		for k := range keys(strings.Split(string(old), "\x00"), key) {
			w.batch.Delete(k)
		}
		w.batch.Delete(entityKey(key))
	}
	if len(names) == 0 {
		return nil
	}
	for k := range keys(names, key) {
		w.batch.Set(k, nil)
	}
	w.batch.Set(entityKey(key), []byte(strings.Join(names, "\x00")))
	return nil
}

// namesOf are the names of an entity, its label for people first. One without a label has its local name.
func namesOf(p *present, blob *changetrack.Blob) ([]string, error) {
	var names []string
	add := func(name string) {
		name = strings.Join(strings.Fields(strings.ReplaceAll(name, "\x00", " ")), " ")
		if len(name) > 2*nameBytes {
			name = strings.ToValidUTF8(name[:2*nameBytes], "")
		}
		if name != "" && len(names) < mostNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if blob.IsKept() {
		data, err := blob.Bytes()
		if err != nil {
			return nil, err
		}
		ts, err := codec.Decode(p.version.Format, data, rdfres.ReadOptions{Name: p.entity})
		if err != nil {
			return nil, err
		}
		subject := rdfres.NewIRI(p.entity)
		add(rdfres.Label(subject, ts))
		for _, label := range rdfres.Labels(subject, ts) {
			add(label)
		}
	}
	add(LocalName(p.entity))
	return names, nil
}

// LocalName is the last part of an IRI.
func LocalName(iri string) string {
	s := strings.TrimRight(iri, "/#")
	if i := strings.LastIndexAny(s, "/#:"); i >= 0 && i+1 < len(s) {
		s = s[i+1:]
	}
	return strings.ReplaceAll(s, "_", " ")
}

// keys are the keys of the names of an entity.
func keys(names []string, key rdfres.Digest) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		made := func(kind byte, text string) []byte {
			return append(append(append([]byte{'N', kind}, clipped(text)...), 0), key[:]...)
		}
		for i, name := range names {
			folded := Fold(name)
			if folded == "" {
				continue
			}
			if i == 0 && !yield(made('a', folded)) {
				return
			}
			for _, rest := range starts(name, mostWords) {
				if !yield(made('w', rest)) {
					return
				}
			}
		}
	}
}

func clipped(text string) string {
	if len(text) <= nameBytes {
		return text
	}
	return strings.ToValidUTF8(text[:nameBytes], "")
}

// inner marks a word inside of a word. No folded name has it.
const inner = "\ue000"

// Fold is a name as it is compared: small letters and digits without accents, with one blank between
// words.
func Fold(name string) string { return strings.ReplaceAll(fold(name), inner, "") }

// fold is Fold with marks between the words inside of a word.
func fold(name string) string {
	var b strings.Builder
	var last rune // of the present word
	blank := false
	runes := []rune(norm.NFKD.String(name))
	for i, r := range runes {
		switch {
		case unicode.Is(unicode.Mn, r) && r < 0x600: // accents of the Latin, Greek and Cyrillic scripts
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if blank && b.Len() > 0 {
				b.WriteByte(' ')
				last = 0
			}
			if blank = false; !unicode.IsMark(r) {
				if begins(last, r, i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
					b.WriteString(inner)
				}
				last = r
			}
			b.WriteRune(unicode.ToLower(r))
		default:
			blank = true
		}
	}
	return norm.NFC.String(b.String())
}

// begins tells whether r begins a word after last: hasPart, XMLList, v2, 2nd. small: a small letter follows r.
func begins(last, r rune, small bool) bool {
	switch {
	case last == 0:
		return false
	case unicode.IsDigit(last) != unicode.IsDigit(r):
		return true
	}
	return unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsUpper(last) && small)
}

// starts are the rests of a folded name from each of its words on, then from those inside of words; at most so many
// of each.
func starts(name string, most int) (out []string) {
	var within []string
	marked := fold(name)
	for i := 0; i < len(marked); {
		rest := strings.ReplaceAll(marked[i:], inner, "")
		switch outer := i == 0 || marked[i-1] == ' '; {
		case outer && len(out) < most:
			out = append(out, rest)
		case !outer && len(within) < most:
			within = append(within, rest)
		}
		next := strings.IndexAny(marked[i:], " "+inner)
		if next < 0 {
			break
		}
		i += next + 1
		if marked[i-1] != ' ' {
			i += len(inner) - 1
		}
	}
	return append(out, within...)
}

// Hit is an entity with its name. Mark goes on after it.
type Hit struct {
	Key   rdfres.Digest
	Label string
	Mark  string
}

// Browse gives names of the alphabet from a folded beginning on, and after a Mark. It ends where the beginning
// does.
func (x *Index) Browse(ctx context.Context, beginning, mark string, most int) ([]Hit, error) {
	lo := append([]byte("Na"), beginning...)
	hi := kv.PrefixEnd(lo)
	if after := append([]byte("Na"), mark...); mark != "" && bytes.Compare(after, lo) >= 0 {
		lo = append(after, 0)
	}
	var hits []Hit
	for pair, err := range x.records.Scan(ctx, lo, hi) {
		if err != nil {
			return nil, err
		}
		hit, ok := x.hit(ctx, pair.Key)
		if !ok {
			continue
		}
		if hits = append(hits, hit); len(hits) >= most {
			break
		}
	}
	return hits, nil
}

// hit reads the entity of a key.
func (x *Index) hit(ctx context.Context, k []byte) (Hit, bool) {
	if len(k) < 3+keyBytes {
		return Hit{}, false
	}
	h := Hit{Mark: string(k[2:])}
	copy(h.Key[:], k[len(k)-keyBytes:])
	names, err := x.records.Get(ctx, entityKey(h.Key))
	h.Label, _, _ = strings.Cut(string(names), "\x00")
	return h, err == nil
}

// Letters are the first letters of the alphabet, at most so many. Each costs one look.
func (x *Index) Letters(ctx context.Context, most int) ([]string, error) {
	var letters []string
	lo, hi := []byte("Na"), []byte("Nb")
	for len(letters) < most {
		found := false
		for pair, err := range x.records.Scan(ctx, lo, hi) {
			if err != nil {
				return nil, err
			}
			r, n := utf8.DecodeRune(pair.Key[2:])
			letters, found = append(letters, string(r)), true
			lo = kv.PrefixEnd(slices.Clone(pair.Key[:2+n]))
			break
		}
		if !found {
			break
		}
	}
	return letters, nil
}

// Find gives entities with names that hold words with these beginnings. cut tells that there may be more.
func (x *Index) Find(ctx context.Context, query string, most int) (hits []Hit, cut bool, err error) {
	words := strings.Fields(Fold(query))
	if len(words) == 0 {
		return nil, false, nil
	}
	words = words[:min(len(words), mostWords)]
	seen := map[rdfres.Digest]bool{}
	steps := 0
	// Names with the words in their order come first, then any order from the longest word on.
	longest := slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) })
	for _, beginning := range []string{strings.Join(words, " "), longest} {
		lo := append([]byte("Nw"), clipped(beginning)...)
		for pair, err := range x.records.Scan(ctx, lo, kv.PrefixEnd(lo)) {
			if err != nil {
				return nil, false, err
			}
			if steps++; len(hits) >= most || steps > mostSteps {
				return hits, true, nil
			}
			hit, ok := x.hit(ctx, pair.Key)
			if !ok || seen[hit.Key] {
				continue
			}
			if len(words) > 1 && beginning == longest && !x.holds(ctx, hit.Key, words) {
				continue
			}
			seen[hit.Key] = true
			hits = append(hits, hit)
		}
		if len(words) == 1 {
			break
		}
	}
	return hits, false, nil
}

// holds tells whether the names of an entity hold words with all beginnings.
func (x *Index) holds(ctx context.Context, key rdfres.Digest, beginnings []string) bool {
	names, err := x.records.Get(ctx, entityKey(key))
	if err != nil {
		return false
	}
	var words []string
	for name := range strings.SplitSeq(string(names), "\x00") {
		words = append(words, starts(name, 2*nameBytes)...)
	}
	for _, b := range beginnings {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, b) }) {
			return false
		}
	}
	return true
}
