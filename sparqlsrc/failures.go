package sparqlsrc

import (
	"errors"

	"github.com/rsbridge/rsbridge/rdfres"
)

// failures are the entities without a description, with the reasons of the first of them.
// They may be all entities, if every label has an invalid language tag.
type failures struct {
	why  map[string]error
	more map[[16]byte]struct{} // the others, by a hash
}

// maxReasons is how many reasons are kept.
const maxReasons = 1000

var errOneOfMany = errors.New("it cannot be described, as many others, of which some are named")

func (f *failures) add(entity string, err error) {
	switch {
	case f.has(entity):
	case len(f.why) < maxReasons:
		if f.why == nil {
			f.why = map[string]error{}
		}
		f.why[entity] = err
	default:
		if f.more == nil {
			f.more = map[[16]byte]struct{}{}
		}
		f.more[shortKey(entity)] = struct{}{}
	}
}

func (f *failures) has(entity string) bool { return f.reason(entity) != nil }

// reason is nil for an entity without a failure.
func (f *failures) reason(entity string) error {
	if why := f.why[entity]; why != nil || len(f.more) == 0 {
		return why
	}
	if _, is := f.more[shortKey(entity)]; is {
		return errOneOfMany
	}
	return nil
}

func (f *failures) count() int64 { return int64(len(f.why) + len(f.more)) }

func shortKey(entity string) [16]byte {
	key := rdfres.EntityKey(entity)
	return [16]byte(key[:16])
}
