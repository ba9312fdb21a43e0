// Package examples holds programs to copy from: expose a store, mirror a source,
// query the admin API, embed the library. Each is a folder with a main of its
// own; the tests here build and run them as a reader would.
package examples
