// Package publishto is where the published files of a bridge are: in a folder, or in a bucket.
package publishto

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/fileblob"
	"github.com/rsbridge/rsbridge/internal/blob/s3blob"
)

// Files are the settings. The zero value: in the folder.
type Files struct {
	PublishTo  string `yaml:"publish_to" doc:"where dump packages and kept documents are: s3://bucket/prefix on a server of the S3 protocol with conditional writes; its address and the credentials are told as for AWS clients (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE). Empty: in the state folder (docs/howto/publish-to-s3.md)"`
	PublishURL string `yaml:"publish_url" doc:"public address of publish_to, of a bucket or a CDN before it, without a slash at the end: requests for dump packages are redirected there. Empty: rsbridge sends them, and the bucket may be private"`
}

// Check names a wrong setting and its value, with the reason; nil for none.
func (f *Files) Check() (key, value string, err error) {
	if f.PublishTo != "" {
		if _, _, err := s3blob.Split(f.PublishTo); err != nil {
			return "publish_to", f.PublishTo, errors.New("is no address of a bucket: write s3://bucket/prefix")
		}
	}
	if f.PublishURL == "" {
		return "", "", nil
	}
	u, err := url.Parse(f.PublishURL)
	switch {
	case f.PublishTo == "":
		return "publish_url", f.PublishURL, errors.New("needs publish_to")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(u.Path, "/"):
		return "publish_url", f.PublishURL, errors.New("is no public address: write http(s)://host/path without a slash at the end")
	}
	return "", "", nil
}

// below is the part of a bucket with files.
const below = "files"

// URL is the public address of the files; "" for none.
func (f *Files) URL() string {
	if f.PublishURL == "" {
		return ""
	}
	return f.PublishURL + "/" + below
}

// Open gives the store of published files, nil for the folder itself. Files that are still in the folder
// are moved to a bucket first. With dry nothing is written.
func (f *Files) Open(ctx context.Context, folder string, dry bool, log *slog.Logger) (blob.Store, error) {
	if f.PublishTo == "" {
		return nil, nil
	}
	bucket, err := s3blob.Open(ctx, f.PublishTo, !dry)
	if err != nil {
		return nil, fmt.Errorf("publish_to: %w", err)
	}
	store := blob.Below(bucket, below)
	if dry {
		return store, nil
	}
	n, err := blob.Move(ctx, fileblob.New(folder), store)
	if err != nil {
		return nil, fmt.Errorf("publish_to: move the files of %s there: %w", folder, err)
	}
	if n > 0 {
		log.Info("moved the published files to the bucket", "from", folder, "to", f.PublishTo, "files", n)
	}
	return store, nil
}

// Try writes a small object to the bucket, and removes it again.
func (f *Files) Try(ctx context.Context) error {
	if f.PublishTo == "" {
		return nil
	}
	_, err := s3blob.Open(ctx, f.PublishTo, true)
	return err
}

// Move takes the files of a set along to another name, or removes them: to is "". It may be repeated
// after a crash.
func (f *Files) Move(ctx context.Context, folder, from, to string) error {
	if f.PublishTo == "" {
		return moveFolder(filepath.Join(folder, from), filepath.Join(folder, to), to == "")
	}
	bucket, err := s3blob.Open(ctx, f.PublishTo, false)
	if err != nil {
		return err
	}
	store := blob.Below(bucket, below)
	if to != "" {
		_, err := blob.Move(ctx, blob.Below(store, from), blob.Below(store, to))
		return err
	}
	return blob.Clear(ctx, blob.Below(store, from))
}

func moveFolder(from, to string, remove bool) error {
	if _, gone := os.Stat(from); gone != nil || remove { // it was done before a crash
		return os.RemoveAll(from)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}
