// Package fetch makes the requests of a destination to its source.
//
// A [Client] asks permitted hosts only, under [Limits] of size and time, and repeats a request
// after a passing failure. [Client.Get] reads a short body into memory;
// [Client.Download] brings a long one to disk and resumes it. A [Promise] is the source's
// word on a body before it is fetched, and verifies it afterwards. The package knows no lists,
// no records and no stores.
package fetch
