package resourcesync

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// ManifestName is the name of the manifest, at the top level of a package.
const ManifestName = "manifest.xml"

// MemberName gives the name of the ZIP member for a path attribute. It takes one leading slash off,
// since sources write it with and without. A path out of the package, or without a file name, is an
// error.
func MemberName(path string) (string, error) {
	name := strings.TrimPrefix(path, "/")
	if err := CheckMemberName(name); err != nil {
		return "", fmt.Errorf("resourcesync: path %q: %w", clip(path), err)
	}
	return name, nil
}

// CheckMemberName refuses unsafe names for a file in a package.
func CheckMemberName(name string) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case name[0] == '/':
		return errors.New("it is absolute; want one leading / at most, which stands for the package")
	case strings.HasSuffix(name, "/"):
		return errors.New("it ends with /, so it means a folder")
	case strings.ContainsRune(name, '\\'):
		return errors.New(`it holds \; folders are divided by /`)
	case strings.ContainsRune(name, 0):
		return errors.New("it holds a NUL character")
	case len(name) > 65535:
		return errors.New("it is longer than a ZIP file can hold")
	case len(name) >= 2 && name[1] == ':' && (name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z'):
		return errors.New("it begins with the name of a drive")
	}
	for segment := range strings.SplitSeq(name, "/") {
		switch segment {
		case "", ".", "..":
			return fmt.Errorf("it has the segment %q", segment)
		}
	}
	return nil
}

// memberForm gives one form to all names and paths of the same member of a package. Nothing is ever
// written to a place with this name; it only identifies the member. A name out of the package, or
// no file's name, is an error.
func memberForm(name string) (string, error) {
	name = strings.TrimPrefix(name, "/")
	if CheckMemberName(name) == nil && isASCII(name) {
		return name, nil
	}
	if !utf8.ValidString(name) { // as the ZIP format was at first
		plain, err := charmap.CodePage437.NewDecoder().String(name)
		if err != nil {
			return "", err
		}
		name = plain
	}
	name = norm.NFC.String(name)
	name = strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/")
	if !strings.HasSuffix(name, "/") { // else it means a folder
		name = path.Clean(name)
	}
	return name, CheckMemberName(name)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
