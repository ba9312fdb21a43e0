package storelog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/internal/embedstore"
	"github.com/rsbridge/rsbridge/internal/sparql"
)

// Patches is the feed of a dataset of Fuseki with a patch log (patch:LoggedDataset), a file of RDF
// Patch. Fuseki writes a transaction into it, and then commits it.
type Patches struct {
	File   string
	Client *sparql.Client
	Skip   func(graph string) bool // graphs without data
	Log    *slog.Logger

	tail *tail     // of the last Since
	seen string    // the files at the last Since
	lost time.Time // when it last told that the log cannot be followed
}

// Try tells why a patch log cannot be followed; "" is none. Fuseki may name its log by the day.
func Try(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dated, gerr := filepath.Glob(file + "-*"); gerr == nil && len(dated) > 0 {
			return nil
		}
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s: not a file", file)
	case err == nil:
		var f *os.File
		if f, err = os.Open(file); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("read the patch log: %w", err)
	}
	return nil
}

// Bounds of reading.
const (
	maxPatchPlaces = 10_000
	maxPatchBytes  = 16 << 20 // of the changes of a transaction
	maxLine        = 1 << 20
	pollPause      = 50 * time.Millisecond
	lostPause      = 5 * time.Minute  // between two scans while the log cannot be followed
	mostVisible    = 30 * time.Second // from a transaction in the log to its sight in the store
)

// patchPlace is a place in a patch log: the end of a transaction. The bytes before it find the file
// again, under any name; id is of the last transaction.
type patchPlace struct {
	end  int64
	hash uint64
	id   string
}

// noLog is the place in a log that is not there.
const noLog = "none"

func (p patchPlace) String() string { return fmt.Sprintf("%d-%016x-%s", p.end, p.hash, p.id) }

func parsePatchPlace(s string) (p patchPlace, ok bool) {
	parts := strings.SplitN(s, "-", 3)
	if len(parts) < 3 {
		return p, false
	}
	n, err := fmt.Sscanf(parts[0]+" "+parts[1], "%d %x", &p.end, &p.hash)
	p.id = parts[2]
	return p, n == 2 && err == nil && p.String() == s
}

// hashBefore is a hash of the bytes before an offset.
func hashBefore(f io.ReaderAt, end int64) (uint64, error) {
	buf := make([]byte, min(end, 256))
	if _, err := f.ReadAt(buf, end-int64(len(buf))); err != nil {
		return 0, err
	}
	h := fnv.New64a()
	h.Write(buf)
	return h.Sum64(), nil
}

// files are the log and its rotated parts, the latest first.
func (p *Patches) files() (out []fs.FileInfo, err error) {
	all, err := os.ReadDir(filepath.Dir(p.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	base := filepath.Base(p.File)
	for _, e := range all {
		if e.Name() != base && !strings.HasPrefix(e.Name(), base+".") && !strings.HasPrefix(e.Name(), base+"-") || strings.HasSuffix(e.Name(), ".gz") {
			continue
		}
		// A link is followed.
		if info, ierr := os.Stat(filepath.Join(filepath.Dir(p.File), e.Name())); ierr == nil && info.Mode().IsRegular() && (e.Name() == base || p.isPatch(info)) {
			out = append(out, info)
		}
	}
	slices.SortStableFunc(out, func(a, b fs.FileInfo) int {
		if c := b.ModTime().Compare(a.ModTime()); c != 0 {
			return c
		}
		return strings.Compare(a.Name(), b.Name())
	})
	return out, err
}

// isPatch tells whether a file begins as a patch.
func (p *Patches) isPatch(info fs.FileInfo) bool {
	f, err := p.open(info)
	if err != nil {
		return true // reading it tells
	}
	defer f.Close()
	head := make([]byte, 2)
	_, err = f.ReadAt(head, 0)
	return err == nil && string(head) == "H "
}

func (p *Patches) open(info fs.FileInfo) (*os.File, error) {
	return os.Open(filepath.Join(filepath.Dir(p.File), info.Name()))
}

// signature changes with the files.
func (p *Patches) signature() string {
	files, err := p.files()
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintln(&b, f.Name(), f.Size(), f.ModTime().UnixNano())
	}
	return b.String() + fmt.Sprint(err)
}

// Wait waits for a change of the files.
func (p *Patches) Wait(ctx context.Context) bool {
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for p.signature() == p.seen && (p.lost.IsZero() || time.Since(p.lost) < lostPause) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// Since reads the transactions after a place. It waits until the store shows the last one. While the
// log cannot be followed, what has changed is unknown from time to time.
func (p *Patches) Since(ctx context.Context, place string) (t embedstore.Touched, end string, err error) {
	pause := 10 * time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, time.Second) {
		p.seen = p.signature()
		r, err := p.read(place)
		p.tail = r.tail
		lost, told := Try(p.File), false
		if lost != nil && err != nil {
			r.gap, r.end, err = true, noLog, nil
		}
		switch {
		case lost == nil:
			p.lost = time.Time{}
		case place != "" && time.Since(p.lost) >= lostPause:
			p.lost, r.gap, told = time.Now(), true, true
			p.Log.Warn("the patch log cannot be followed: the set is scanned from time to time", "error", lost)
		}
		if err != nil || r.end == place || r.gap && place == "" {
			return embedstore.Touched{Unknown: told}, r.end, err
		}
		shown, err := r.last.shown(ctx, p.Client)
		if err != nil {
			return t, "", err
		}
		if shown || time.Since(began) > mostVisible {
			r.gap = r.gap || !shown
			t, err = p.touched(ctx, r)
			return t, r.end, err
		}
		select {
		case <-ctx.Done():
			return t, "", context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// read reads from a place to the end of the log.
func (p *Patches) read(place string) (*reading, error) {
	r := newReading()
	files, err := p.files()
	if err != nil || len(files) == 0 {
		r.gap, r.end = true, noLog
		return r, err
	}
	at, ok := parsePatchPlace(place)
	name := ""
	for _, info := range files {
		if !ok || info.Size() < at.end {
			continue
		}
		f, err := p.open(info)
		if err != nil {
			return r, err
		}
		if hash, herr := hashBefore(f, at.end); herr == nil && hash == at.hash {
			name, r.id = info.Name(), at.id
			if p.tail != nil && p.tail.place == place {
				r.tail = p.tail
			}
			err = r.from(f, at.end)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return r, err
		}
		if name != "" {
			break
		}
	}
	if name == "" { // the log is another: what has happened since is unknown
		f, err := p.open(files[0])
		if err != nil {
			return r, err
		}
		err = r.from(f, 0)
		r.gap = true
		return r, errors.Join(err, f.Close())
	}
	for at := name; at != ""; {
		if at, err = p.successor(r, files, at); err != nil {
			return r, err
		}
		name = cmp.Or(at, name)
	}
	if name == files[0].Name() {
		return r, nil
	}
	// The latest file does not go on where the one before ends.
	f, err := p.open(files[0])
	if err != nil {
		return r, err
	}
	latest := newReading()
	err = latest.from(f, 0)
	if latest.id != "" {
		latest.gap = true
		r = latest
	}
	return r, errors.Join(err, f.Close())
}

// successor reads the file after the one just read, if the log was rotated, and gives its name.
func (p *Patches) successor(r *reading, files []fs.FileInfo, name string) (string, error) {
	if r.id == "" {
		return "", nil
	}
	for _, info := range files {
		if info.Name() == name || info.Size() == 0 {
			continue
		}
		f, err := p.open(info)
		if err != nil {
			return "", err
		}
		head := make([]byte, 512)
		n, _ := f.ReadAt(head, 0)
		first, _, _ := bytes.Cut(head[:n], []byte("\nTX"))
		found := bytes.Contains(first, []byte("\nH prev "+r.id+" .")) // its first transaction follows ours
		if found {
			r.gap, r.tail = r.gap || r.open, nil
			err = r.from(f, 0)
		}
		if err = errors.Join(err, f.Close()); err != nil || found {
			return info.Name(), err
		}
	}
	return "", nil
}

// reading is what a part of a log says.
type reading struct {
	end string // the place after it
	id  string // of the last transaction
	// gap: something may be missing before, in or after it.
	gap    bool
	open   bool // the last transaction has no end yet
	places map[[2]string]bool
	links  map[[3]string]bool // from a subject to a blank object in a graph: there, or not any more
	last   changes            // of the last transaction
	tail   *tail              // before: where to go on; after: where it stopped
	bytes  int64              // read
}

func newReading() *reading {
	return &reading{places: map[[2]string]bool{}, links: map[[3]string]bool{}}
}

// tail is a transaction without an end, as far as it was read: it is not read again from its begin.
type tail struct {
	place    string // before it
	at       int64  // where the reading stopped
	hash     uint64 // of the bytes before
	id, prev string
	own      changes
	bytes    int  // of own
	many     bool // more than own
	gap      bool // something may be missing in it
	open     bool
	long     bool // the reading stopped in a line that is too long
}

// from reads the transactions of a file from an offset on.
func (r *reading) from(f *os.File, offset int64) error {
	t, end := tail{at: offset}, offset
	if kept := r.tail; kept != nil {
		if hash, err := hashBefore(f, kept.at); err == nil && hash == kept.hash {
			t = *kept
		}
	}
	from := t.at
	in := bufio.NewReaderSize(io.NewSectionReader(f, t.at, 1<<62), maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			t.at, t.long, t.gap = t.at+int64(len(line)), true, true
			continue
		}
		if errors.Is(err, io.EOF) {
			r.open = t.open || t.long || len(line) > 0
			break // a line without an end is read again
		}
		if err != nil {
			return err
		}
		t.at += int64(len(line))
		if t.long {
			t.long = false
			continue
		}
		op, rest, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		rest = strings.TrimSpace(strings.TrimSuffix(rest, "."))
		switch op {
		case "H":
			if t.open { // the transaction before was cut short
				t = tail{at: t.at, id: t.id, prev: t.prev, gap: true}
			}
			key, value, _ := strings.Cut(rest, " ")
			switch key {
			case "id":
				t.id, t.prev = value, ""
			case "prev":
				t.prev = value
			}
		case "TX":
			t.gap = t.gap || t.open || t.prev != r.id
			t.open = true
		case "A", "D":
			if t.many {
				continue
			}
			c, ok := parseChange(op == "A", rest)
			switch {
			case !ok || !t.open:
				t.gap = true
			case len(t.own) == maxPatchPlaces || t.bytes > maxPatchBytes:
				t.many = true
			default:
				t.own, t.bytes = append(t.own, c), t.bytes+len(line)
			}
		case "TC", "TA":
			r.gap = r.gap || t.gap || !t.open
			if op == "TC" {
				r.take(t.own, t.many)
			}
			end, r.id = t.at, t.id
			t = tail{at: t.at, id: t.id, prev: t.prev}
		case "PA", "PD", "": // prefixes
		default:
			t.gap = true
		}
	}
	r.gap, r.bytes = r.gap || t.gap, r.bytes+t.at-from
	hash, err := hashBefore(f, end)
	if err == nil {
		t.hash, err = hashBefore(f, t.at)
	}
	r.end = patchPlace{end, hash, r.id}.String()
	t.place, r.tail = r.end, &t
	return err
}

// take takes the changes of a committed transaction.
func (r *reading) take(own changes, many bool) {
	if len(own) > 0 {
		r.last = own
	}
	if many || len(r.places) > maxPatchPlaces {
		r.gap = true
		return
	}
	for _, c := range own {
		r.places[[2]string{c.s, c.g}] = true
		if isBlankLabel(c.o) {
			r.places[[2]string{c.o, c.g}] = true
			r.links[[3]string{c.s, c.o, c.g}] = c.add
		}
	}
}

// touched names the entities of a reading.
func (p *Patches) touched(ctx context.Context, r *reading) (t embedstore.Touched, err error) {
	t.Unknown = r.gap
	var blanks []string
	for place := range r.places {
		graph := strings.Trim(place[1], "<>")
		switch {
		case p.Skip != nil && p.Skip(graph):
			continue
		case isBlankLabel(place[0]):
			blanks = append(blanks, place[0])
		case strings.Contains(place[0], `\`) || strings.Contains(graph, `\`):
			t.Unknown = true // IRIs with escapes
		default:
			t.Subjects = append(t.Subjects, strings.Trim(place[0], "<>"))
		}
		t.Graphs = append(t.Graphs, graph)
	}
	t.Blank = len(blanks) > 0
	if t.Blank && !t.Unknown {
		slices.Sort(blanks)
		var known bool
		known, err = r.owners(ctx, p.Client, slices.Compact(blanks), &t.Subjects)
		t.Unknown = !known
	}
	for _, list := range []*[]string{&t.Subjects, &t.Graphs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return t, err
}
