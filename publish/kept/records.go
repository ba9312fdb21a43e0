package kept

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// Version is that of the records: their owner refuses any other.
const Version = 1

// Package is the record of a ZIP package and the copy of its manifest.
type Package struct {
	Version        int       `json:"v"`
	File           string    `json:"file"` // below the set's folder
	Length         int64     `json:"length"`
	SHA256         string    `json:"sha256"`
	Manifest       string    `json:"manifest"` // below the set's folder
	ManifestLength int64     `json:"manifest_length"`
	ManifestSHA256 string    `json:"manifest_sha256"`
	Entries        int       `json:"entries"`
	From           time.Time `json:"from,omitzero"`  // Change Dump
	Until          time.Time `json:"until,omitzero"` // Change Dump
	Number         uint64    `json:"number,omitempty"`
	Last           uint64    `json:"last,omitempty"`
}

// Document is the record of a document as it is kept: raw deflate in a file.
type Document struct {
	Name   string `json:"name"`             // its address is archives/NAME.xml, or NAME.xml if there is a folder
	Folder string `json:"folder,omitempty"` // "": archives
	Length int64  `json:"length"`
	CRC32  uint32 `json:"crc32"`
	Stored int64  `json:"stored"`         // bytes of the file
	File   string `json:"file,omitempty"` // without its suffix; "": by folder and name
}

// Path is the name of its file.
func (d Document) Path() string {
	return cmp.Or(d.File, cmp.Or(d.Folder, "archives")+"/"+d.Name) + ".xml.deflate"
}

// OnlyName is a name never used again. After a loss of the state, or its return from a backup,
// numbers are used again. Then other bytes would stand at an address cached for ever, or under an older record.
func OnlyName(format string, a ...any) string {
	return fmt.Sprintf(format, a...) + "-" + strings.ToLower(rand.Text()[:10])
}
