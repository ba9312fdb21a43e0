package sink

import "context"

// Whole mirrors are replaced as a whole, at the end of a run with changes. An implementer
// guarantees:
//   - Absent tells of no mirror at all; a mirror of nothing is one.
//   - Foreign tells of a mirror that somebody has changed or replaced since it was written.
//   - Replace gets parts of canonical N-Triples; blank nodes are of the part's authority.
type Whole interface {
	Absent() bool
	Foreign() (bool, error)
	Replace(ctx context.Context, authorities []string, each func(put PutPart) error) error
}

// PutPart takes lines of some resources, canonical N-Triples, with blank nodes of an
// authority. It does not keep them.
type PutPart func(authority string, lines []byte) error
