package changetrack

import (
	"context"
	"encoding/binary"
	"hash/crc32"

	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/rdfres/codec"
)

// Ahead gives a function for rdfres.Description.Ahead. It makes the parts a first Scan with these
// options needs from a description: the graph digest, and the fixity of the checked representation.
// It may be called by several goroutines. Scan also takes parts made by an earlier Ahead.
//
// It is nil if any entity is known already: most are unchanged then, and computing a digest takes
// less than handing the work to others.
func (l *Log) Ahead(ctx context.Context, o ScanOptions) func(entity string, triples []rdfres.Triple) []byte {
	o.defaults()
	v := l.View(ctx)
	defer v.Close()
	if v.err != nil || v.head.seq != 0 {
		return nil
	}
	return func(entity string, triples []rdfres.Triple) []byte {
		data, err := tryEncode(l.t.o.encode, o.Format, entity, triples)
		if err != nil { // whoever compares it finds out too
			return nil
		}
		a := foreseen{graph: rdfres.GraphDigest(triples), triples: len(triples), format: o.Format, crc: crc32.ChecksumIEEE(data), fixity: rdfres.ComputeFixity(data, o.MD5, o.SHA1)}
		return a.append(make([]byte, 0, recordRoom))
	}
}

// foreseen is the content of Description.Ahead.
type foreseen struct {
	graph   rdfres.Digest
	triples int
	format  rdfres.Format // of the representation
	crc     uint32        // of its bytes
	fixity  rdfres.Fixity
}

func (a *foreseen) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, a.crc)
	return putVersion(b, &Version{Graph: a.graph, Format: a.format, Wanted: a.format, Fixity: a.fixity, Triples: a.triples})
}

// readForeseen gives false for another number of triples, or another form.
func readForeseen(b []byte, triples int) (a foreseen, ok bool) {
	if len(b) < 4 {
		return a, false
	}
	r := reading{b: b[4:]}
	v := r.version()
	a = foreseen{graph: v.Graph, triples: v.Triples, format: v.Format, crc: binary.BigEndian.Uint32(b), fixity: v.Fixity}
	return a, r.end("what was made ahead") == nil && a.triples == triples
}

// represented gives the representation checked ahead. It is made again, since this takes less than
// keeping it; false if another format is wanted.
func (a *foreseen) represented(o *ScanOptions, it *item) (data []byte, ok bool) {
	if a.format != o.Format || o.MD5 != (a.fixity.MD5 != nil) || o.SHA1 != (a.fixity.SHA1 != nil) {
		return nil, false
	}
	data, err := codec.Encode(a.format, it.entity, it.triples)
	return data, err == nil && int64(len(data)) == a.fixity.Length && crc32.ChecksumIEEE(data) == a.crc
}
