// Package feed reads a source: its lists, dumps and changes, in order.
//
// A [Source] finds the configured set from any address of its site, and says what it offers
// ([Offer]). Its state is an [Inventory]: the Resource List, or the manifests of the Resource
// Dump, with the later changes. [Source.EachChange] gives the changes after a [Cursor]. Lost
// changes, and a log other than the followed one, are a [GapError].
//
// The last applied change proves that a log is the followed one. Each poll looks for it
// (newest.go), and compares a list without numbers with its earlier self (seen.go). A missing
// list is not passed over, unless it lies before the cursor (missing.go).
//
// A [Keeper] keeps the [Position] between polls. The package knows no stores, and writes none.
package feed
