// Package check holds ResourceSync documents against the rules of the specification.
//
//   - [Validate] checks one document, as it streams by.
//   - [Checker] walks a source and checks the rules between its documents.
//   - [Explore] walks a source and tells its offer, without judging.
//
// It is for people in front of a source: no source and no destination needs it. The rules and
// their numbers are in docs/reference/rules.md.
package check
