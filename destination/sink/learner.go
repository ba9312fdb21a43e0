package sink

import (
	"context"
	"encoding/json"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Learner mirrors rewrite some statements, each place in its own way, and find out how. The
// caller keeps the findings, and hashes statements in their normal form. An implementer guarantees:
//   - Learn asks the place, and removes what it wrote.
//   - The same findings have the same normal form for ever. Two statements are one in the place
//     just if they have one normal form.
//   - Take makes findings the ones to work with, and sets the normal form of the layout. It
//     refuses a layout the place cannot hold.
//   - Named is the place's own name in its last answer, "" for unknown. With another name the
//     findings are asked for anew.
type Learner interface {
	Learn(ctx context.Context) (*Findings, error)
	Take(*Findings) error
	Named() string
}

// Findings tell how a place rewrites statements.
type Findings struct {
	NormalForm rdfres.NormalForm `json:"normal_form"`
	Unanswered []string          `json:"unanswered,omitempty"` // questions for the next run
	Facts      json.RawMessage   `json:"facts"`                // the sink's own
}
