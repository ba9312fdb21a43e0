package rdfres

// ---- normal forms (house, decision 14)

// NormalForm says how a store rewrites the terms it is given. The zero value
// rewrites nothing. Rules are named and can be stored (JSON).
type NormalForm struct {
	Rules []string `json:"rules"` // sorted names of rules, see NormalRules
}

func NormalRules() []string                                                        { panic("stub") } // all known rule names
func (n NormalForm) Term(t Term) Term                                              { panic("stub") }
func (n NormalForm) Triple(t Triple) Triple                                        { panic("stub") }
func ProbeTriples() []Triple                                                       { panic("stub") } // to be written into a scratch graph
func DetectNormalForm(written, read []Triple) (n NormalForm, unexplained []Triple) { panic("stub") }
func ValueEqual(a, b Term) bool                                                    { panic("stub") } // same value in XSD / BCP47 terms: a rewriting, not a difference
