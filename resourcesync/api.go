package resourcesync

import (
	"io"
	"time"
)

// Finding is one rule that a document breaks (dossier, section 6).
type Finding struct {
	Rule     int    `json:"rule"`
	Severity string `json:"severity"` // E, W, I
	Line     int    `json:"line"`
	Message  string `json:"message"` // with the offending text and what would be right
}

// ValidateOptions of Validate.
type ValidateOptions struct {
	Location string
	Strict   bool
	Now      time.Time
}

// Validate checks one document against the offline rules, streaming.
func Validate(r io.Reader, o ValidateOptions) (h Head, findings []Finding, err error) { panic("stub") }
