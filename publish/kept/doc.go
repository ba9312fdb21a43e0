// Package kept has the published files of a set: packages of dumps, and documents that stay as they were.
// They are in a folder or a bucket. A file is written whole, read back, and stored under a name never used
// before; its bytes never change. Records name the files, and tell later whether they are as they were made.
package kept
