package webguard

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Masked is an address for messages, without its user, its password and the secrets of its
// query, also a malformed one.
func Masked(address string) string { return withoutFields(withUserMasked(address)) }

func withUserMasked(address string) string {
	end := strings.LastIndexByte(address, '@')
	if end < 0 {
		return address
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" && u.User == nil {
		return address // the @ is in its path or query
	}
	if begin := strings.Index(address, "//"); begin >= 0 && begin < end {
		return address[:begin+2] + "..." + address[end:]
	}
	if strings.Contains(address[:end], ":") { // no mail address
		return "..." + address[end:]
	}
	return address
}

// userInText is the user and password of an address in a text: all up to an @ before the
// first slash, or all up to the last @ after an impossible port, or up to an @ after blanks.
// Schemes may be misspelt.
var userInText = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^\s"<>/?#]*@|` +
	`([a-z][a-z0-9+.-]*://)?[^\s"'<>/?#:]+:/?\d*[^\s"'<>/?#\d][^\s"'<>]*@|` +
	`([a-z][a-z0-9+.-]*://)[^\s"'<>/?#:@]*:\d*[^\s"'<>/?#@\d:][^"'<>/?#@\n]*@`)

// MaskedText is a text without the users, passwords and tokens of the addresses in it.
func MaskedText(text string) string {
	return tokensInText.ReplaceAllString(userInText.ReplaceAllString(text, "${1}${2}${3}...@"), "${1}"+hidden)
}

// MaskedSetting is MaskedText of a message about settings. It hides fields like key too; in the
// address of a document such a field is no secret.
func MaskedSetting(text string) string {
	return withoutFieldsInText(MaskedText(text))
}

// invalidPart is the part of an address quoted by net/url. In a malformed address it may be the
// password.
var invalidPart = regexp.MustCompile(`invalid (port|URL escape) "(?:\\.|[^"\\])*"`)

// MaskedError is an error without the users and passwords of addresses. A url.Error in it
// is changed: callers take its cause out.
func MaskedError(err error) error {
	if err == nil {
		return nil
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		u.URL, u.Err = MaskedText(u.URL), MaskedError(u.Err)
	}
	if text := MaskedText(err.Error()); text != err.Error() {
		return &maskedError{invalidPart.ReplaceAllString(text, "invalid $1"), err}
	}
	return err
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// Parse is url.Parse with errors without users and passwords. Those of url.Parse quote
// parts of the address, perhaps of a password.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err == nil:
		return u, nil
	case strings.Contains(address, "@"):
		return nil, fmt.Errorf("%q is no address (a password in it writes / : @ %% as %%2F %%3A %%40 %%25)", Masked(address))
	}
	return nil, err
}
