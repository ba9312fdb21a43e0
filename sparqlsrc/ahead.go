package sparqlsrc

import "github.com/rsbridge/rsbridge/rdfres"

// Descriptions are made ahead of their reader, in batches of so many descriptions or
// triples at most: a few batches bound the memory.
const (
	aheadEntities = 64
	aheadTriples  = 4096
	aheadBatches  = 2
)

// ahead runs produce in a goroutine of its own and passes its descriptions on. The
// goroutine has ended when ahead returns, also when yield has had enough (errStopped)
// or panics. ahead repeats a panic of produce.
func ahead(produce func(yield func(rdfres.Description, error) bool) error, yield func(rdfres.Description, error) bool) error {
	batches, stop := make(chan []rdfres.Description, aheadBatches), make(chan struct{})
	var err error
	var panicked any
	go func() {
		defer close(batches)
		defer func() { panicked = recover() }()
		var batch []rdfres.Description
		triples := 0
		send := func() bool {
			select {
			case batches <- batch:
				batch, triples = nil, 0
				return true
			case <-stop:
				return false
			}
		}
		err = produce(func(d rdfres.Description, _ error) bool {
			batch = append(batch, d)
			triples += len(d.Triples)
			return len(batch) < aheadEntities && triples < aheadTriples || send()
		})
		if err == nil {
			send()
		}
	}()
	defer func() {
		close(stop)
		for range batches { // until the goroutine has ended
		}
	}()
	for batch := range batches {
		for _, d := range batch {
			if !yield(d, nil) {
				return errStopped
			}
		}
	}
	if panicked != nil {
		panic(panicked)
	}
	return err
}
