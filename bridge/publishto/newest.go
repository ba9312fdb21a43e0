package publishto

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/blob/s3blob"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// newest is the object with the commit of the newest publication, a kv.Point as JSON.
const newest = "newest.json"

// mostNewest is the longest such object.
const mostNewest = 4096

// NewestAt names the object for people.
func (f *Files) NewestAt() string { return f.PublishTo + "/" + newest }

// Newest replaces the commit noted in the bucket by next of it, unless they are equal. Without a note it is the zero
// point. Without a bucket next is not called.
func (f *Files) Newest(ctx context.Context, next func(was kv.Point) (kv.Point, error)) error {
	if f.PublishTo == "" {
		return nil
	}
	bucket, err := s3blob.Open(ctx, f.PublishTo, false)
	if err != nil {
		return fmt.Errorf("publish_to: %w", err)
	}
	was, tag, err := readNewest(ctx, bucket)
	if err != nil {
		return fmt.Errorf("publish_to: read %s: %w", f.NewestAt(), err)
	}
	now, err := next(was)
	if err != nil || now == was {
		return err
	}
	raw, err := json.Marshal(now)
	if err == nil {
		_, err = bucket.Swap(ctx, newest, raw, tag, blob.Meta{ContentType: "application/json", CacheControl: "no-store"})
	}
	if err != nil {
		return fmt.Errorf("publish_to: write %s: %w", f.NewestAt(), err)
	}
	return nil
}

func readNewest(ctx context.Context, bucket blob.Store) (was kv.Point, tag blob.Tag, err error) {
	body, info, err := bucket.Open(ctx, newest, 0, mostNewest)
	if errors.Is(err, blob.ErrNotFound) {
		return was, "", nil
	}
	if err != nil {
		return was, "", err
	}
	raw, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err == nil {
		err = json.Unmarshal(raw, &was)
	}
	return was, info.Tag, err
}
