// Package item has the resources of a source in the words of its lists, manifests and changes: address,
// promises, time, and where else they can be had. An [Item] is made of one entry, compared with a record, and
// kept as bytes while it waits. The package sends no requests.
package item
