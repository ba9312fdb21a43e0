package audit

import (
	"encoding/json"

	"github.com/rsbridge/rsbridge/destination/ledger"
)

// event is one finding on a resource or an entity; several make a Difference.
type event struct {
	Entity   string `json:"e,omitempty"`
	Location string `json:"l,omitempty"`
	Graph    string `json:"g,omitempty"` // of the mirror, of a finding there
	Detail   string `json:"d"`
	Triples  int    `json:"n,omitempty"` // lacking ones, or those without an owner, as the one in Detail
	More     bool   `json:"m,omitempty"` // there are more of those without an owner
	Broken   bool   `json:"b,omitempty"` // its kept representation is not as recorded
	Due      bool   `json:"a,omitempty"` // the next run applies a change of it, or tries it again
	Pending  bool   `json:"p,omitempty"` // it was received and not taken
	Came     string `json:"c,omitempty"` // the digest of an unannounced answer of the source
	Item     []byte `json:"i,omitempty"` // its entry
}

// Ranks of events: the first of a resource decides its kind.
const (
	rankMissing      = 1 // the source has it, the records do not
	rankExtra        = 2 // the records have it, the source does not
	rankDifferent    = 3 // both, otherwise
	rankNoSubject    = 4 // in the mirror, of a subject without an owner
	rankMirrorLacks  = 5 // triples of it are not in the mirror
	rankMirrorExcess = 6 // its subjects have triples without an owner in the mirror
	rankRewritten    = 7
	rankNoFile       = 8 // the records have it, the folder does not
	rankOtherFile    = 9 // its file has other bytes
)

// notMirrored is the finding of an audit about a missing resource.
const notMirrored = "the source has it, it is not mirrored"

func (a *pass) event(loc ledger.Hash, rank byte, e event) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return a.events.Add(append(append(make([]byte, 0, 17), loc[:]...), rank), raw)
}
