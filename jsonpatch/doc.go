// Package jsonpatch computes and applies RFC 6902 patches between two versions
// of a JSON document.
//
// [Diff] is deterministic: the same two documents give the same patch, byte for
// byte. It is made for representations whose arrays are sorted sets: elements
// of both versions stay in place, and differences are named as
// deeply as it makes the patch shorter. [Apply] is strict: an operation whose
// target is not there fails the whole patch and nothing is changed.
//
// Bytes. The result of Apply is compact JSON. Members keep their order, a new
// member stands before the first one whose name is greater, so a document with
// sorted members stays sorted. Strings and numbers outside a patch
// keep their spelling. If the target of a Diff has sorted members, no blanks
// and the short escapes of [AppendString], Apply gives back its very bytes.
//
// It knows nothing of JSON-LD and nothing of HTTP. Documents
// are held in memory; a caller bounds their size.
package jsonpatch
