package syntax

import "github.com/rsbridge/rsbridge/rdfres"

// EachBlock calls f with the triples of each subject, those of the entity first. ts is sorted by subject.
func EachBlock(entity string, ts []rdfres.Triple, f func([]rdfres.Triple)) {
	first := rdfres.NewIRI(entity)
	for _, entityFirst := range []bool{true, false} {
		for i := 0; i < len(ts); {
			j := i + 1
			for j < len(ts) && ts[j].S == ts[i].S {
				j++
			}
			if (ts[i].S == first) == entityFirst {
				f(ts[i:j])
			}
			i = j
		}
	}
}
