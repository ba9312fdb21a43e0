package feed

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// Packages opens packages of a source. An implementer guarantees: a package is whole and as promised,
// and a member is not longer than a resource may be. Whoever opens a package closes its download.
type Packages interface {
	OpenPackage(ctx context.Context, p Package, attempts int) (*Download, *resourcesync.Package, error)
	ReadMember(z *resourcesync.Package, path string) ([]byte, error)
}

// OpenPackage downloads a package, verifies it whole and opens it.
func (src *Documents) OpenPackage(ctx context.Context, p Package, attempts int) (*Download, *resourcesync.Package, error) {
	dl, err := src.downloadPackage(ctx, p, attempts)
	if err != nil {
		return nil, nil, err
	}
	z, err := src.zipIn(dl, p)
	if err != nil {
		return nil, nil, errors.Join(err, dl.Close())
	}
	return dl, z, nil
}

// downloadPackage downloads a package and verifies it whole.
func (src *Documents) downloadPackage(ctx context.Context, p Package, attempts int) (*Download, error) {
	if p.Promise.Length > src.lim.Package {
		return nil, fmt.Errorf("%w: %d bytes are promised, at most %d are taken (%s)", fetch.ErrTooLarge, p.Promise.Length, src.lim.Package, src.opt.Settings.Of("max_package_bytes"))
	}
	dl, err := src.download(ctx, fetch.Request{URL: p.URL, Accept: "application/zip, */*;q=0.1", MaxBytes: src.lim.Package, Attempts: attempts})
	if errors.Is(err, fetch.ErrTooLarge) {
		err = fmt.Errorf("%w (%s)", err, src.opt.Settings.Of("max_package_bytes"))
	}
	if err != nil {
		return nil, err
	}
	if err := dl.Verify(p.Promise.Length, p.Promise.Hashes); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w%s", ErrMismatch, err, MismatchHint), dl.Close())
	}
	return dl, nil
}

// zipIn opens a downloaded package. A too large member fails by itself, when it is read
// (ReadMember).
func (src *Documents) zipIn(dl *Download, p Package) (*resourcesync.Package, error) {
	return resourcesync.OpenPackage(dl.ReaderAt(), dl.Size, resourcesync.PackageOptions{MaxEntryBytes: src.lim.Package, Reader: src.readerOptions(p.URL)})
}

type Package struct {
	URL      string
	Promise  fetch.Promise
	Contents string // address of a copy of its manifest, "" for none
}

// IsZIP tells whether a package may be one, by its type and else its suffix.
func (p *Package) IsZIP() bool {
	switch p.Promise.Type {
	case "application/zip", "application/x-zip-compressed":
		return true
	case "", "application/octet-stream":
		switch strings.ToLower(path.Ext(strings.SplitN(p.URL, "?", 2)[0])) {
		case ".warc", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar":
			return false
		}
		return true
	}
	return false
}

func (src *Documents) ReadMember(z *resourcesync.Package, path string) ([]byte, error) {
	if path == "" {
		return nil, errors.New("the manifest gives no path")
	}
	body, err := z.ReadFile(path, src.lim.Resource)
	if errors.Is(err, resourcesync.ErrLimit) {
		err = fmt.Errorf("%w: %w (%s)", fetch.ErrTooLarge, err, src.opt.Settings.Of("max_resource_bytes"))
	}
	return body, err
}

// ErrMismatch marks a broken promise of length, hash or graph digest.
var ErrMismatch = errors.New("does not keep its promise")

// MismatchHint goes with ErrMismatch: each run fetches it again, later and later.
const MismatchHint = " (changed on the way, or by the source without announcing it; it is tried again, and if that stays so the source has to publish it anew)"
