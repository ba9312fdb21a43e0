// Package s3blob keeps objects in a bucket of a server that speaks the S3 protocol and has conditional
// PUT. It is reached as AWS clients are told to: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their
// kin, the files of ~/.aws, AWS_ENDPOINT_URL and AWS_REGION.
package s3blob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/rsbridge/rsbridge/internal/blob"
	"github.com/rsbridge/rsbridge/internal/webclient"
)

// ErrUnconditional comes from Open: two writers could not be told apart on such a server.
var ErrUnconditional = errors.New("the server writes without regard to If-Match and If-None-Match")

const (
	tries = 5       // of one request, each with a longer pause before it
	large = 5 << 30 // bytes of one PUT at most

	metaWrite      = "Rsbridge-Write" // names one call, for the answer that was lost
	metaGeneration = "Rsbridge-Generation"
)

// Store is a prefix of a bucket.
type Store struct {
	client *minio.Core
	bucket string
	prefix string // "" or with a slash at its end
	page   int    // objects in one answer of a list; 0: the server's
}

// Split reads s3://bucket or s3://bucket/prefix.
func Split(address string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(address, "s3://")
	bucket, prefix, _ = strings.Cut(strings.TrimRight(rest, "/"), "/")
	if !ok || len(bucket) < 3 || strings.ContainsAny(bucket, "@:?#") || prefix != "" && blob.Check(prefix) != nil {
		return "", "", fmt.Errorf("%q: want s3://bucket/prefix", address)
	}
	return bucket, prefix, nil
}

// Open gives the store at s3://bucket/prefix. With try it tries the conditions on a small object, and
// removes it again; otherwise nothing is asked.
func Open(ctx context.Context, address string, try bool) (*Store, error) {
	bucket, prefix, err := Split(address)
	if err != nil {
		return nil, err
	}
	server := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	at, err := url.Parse(server)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path, "/") != "" || at.User != nil {
		return nil, errors.New("AWS_ENDPOINT_URL: want http(s)://host[:port]") // it may hold a password
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" && at.Host != "s3.amazonaws.com" {
		region = "us-east-1"
	}
	chain := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		chain = append(chain, &credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}})
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // sizes are of the bytes as they are kept
	transport.ResponseHeaderTimeout = time.Minute
	transport.MaxIdleConnsPerHost = 32
	core, err := minio.NewCore(at.Host, &minio.Options{Secure: at.Scheme == "https", Region: region, Creds: credentials.NewChainCredentials(chain),
		Transport: webclient.Named(transport, ""), MaxRetries: tries})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	s := &Store{client: core, bucket: bucket}
	if prefix != "" {
		s.prefix = prefix + "/"
	}
	if try {
		err = s.probe(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", address, at.Host, err)
	}
	return s, nil
}

// probe finds out whether conditions hold.
func (s *Store) probe(ctx context.Context) (err error) {
	name := "probe/" + rand.Text()
	if err := s.Create(ctx, name, strings.NewReader("a"), 1, blob.Meta{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Delete(context.WithoutCancel(ctx), name)) }()
	err = s.Create(ctx, name, strings.NewReader("b"), 1, blob.Meta{})
	if err == nil {
		return ErrUnconditional
	}
	if !errors.Is(err, blob.ErrExists) {
		return err
	}
	info, err := blob.Stat(ctx, s, name)
	if err != nil {
		return err
	}
	if _, err := s.Swap(ctx, name, []byte("c"), info.Tag, blob.Meta{}); err != nil {
		return err
	}
	_, err = s.Swap(ctx, name, []byte("d"), info.Tag, blob.Meta{})
	switch {
	case err == nil:
		return ErrUnconditional
	case errors.Is(err, blob.ErrChanged):
		return nil
	}
	return err
}

// Create sends the digest too, so the server refuses other bytes.
func (s *Store) Create(ctx context.Context, name string, r io.ReadSeeker, size int64, m blob.Meta) error {
	_, err := s.put(ctx, name, r, size, m, func(o *minio.PutObjectOptions) { o.SetMatchETagExcept("*") })
	if errors.Is(err, errCondition) {
		err = blob.ErrExists
	}
	return s.wrap("create", name, err)
}

// Swap sends the digest too.
func (s *Store) Swap(ctx context.Context, name string, data []byte, old blob.Tag, m blob.Meta) (blob.Tag, error) {
	tag, err := s.put(ctx, name, bytes.NewReader(data), int64(len(data)), m, func(o *minio.PutObjectOptions) {
		if old == "" {
			o.SetMatchETagExcept("*")
		} else {
			o.SetMatchETag(string(old))
		}
	})
	if errors.Is(err, errCondition) || old != "" && errors.Is(err, blob.ErrNotFound) {
		err = blob.ErrChanged
	}
	return tag, s.wrap("replace", name, err)
}

// errCondition is a condition that does not hold.
var errCondition = errors.New("the condition of a PUT does not hold")

// put writes on a condition. A condition may fail because this very call was carried out and its answer
// was lost: the object then bears its mark.
func (s *Store) put(ctx context.Context, name string, r io.ReadSeeker, size int64, m blob.Meta, condition func(*minio.PutObjectOptions)) (blob.Tag, error) {
	if err := blob.Check(name); err != nil {
		return "", err
	}
	if size > large {
		return "", fmt.Errorf("%d bytes are too many for one object, at most %d", size, int64(large))
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes came, want %d", n, size)
	}
	if err != nil {
		return "", err
	}
	mark := rand.Text()
	o := minio.PutObjectOptions{ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, CacheControl: m.CacheControl,
		DisableContentSha256: true, // of pieces: the digest of the whole is sent
		UserMetadata:         map[string]string{metaWrite: mark}}
	if m.Generation > 0 {
		o.UserMetadata[metaGeneration] = strconv.FormatUint(m.Generation, 10)
	}
	condition(&o)
	for try := 1; ; try++ {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		done, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, &unclosed{r}, size, "", hex.EncodeToString(sum.Sum(nil)), o)
		if err == nil {
			return blob.Tag(done.ETag), nil
		}
		code := minio.ToErrorResponse(err)
		if code.Code == "ConditionalRequestConflict" && try < tries && ctx.Err() == nil { // another one is on its way
			continue
		}
		if code.StatusCode != http.StatusPreconditionFailed && code.StatusCode != http.StatusConflict {
			return "", known(err)
		}
		info, err := s.client.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
		if err = known(err); err != nil && !errors.Is(err, blob.ErrNotFound) {
			return "", err
		}
		if err == nil && info.UserMetadata[metaWrite] == mark {
			return blob.Tag(info.ETag), nil
		}
		return "", errCondition
	}
}

// unclosed keeps the client from closing a file of the caller.
type unclosed struct{ io.ReadSeeker }

// known gives the errors of package blob for a server's, and advice for those of a configuration.
func known(err error) error {
	if err == nil {
		return nil
	}
	switch r := minio.ToErrorResponse(err); r.Code {
	case "NoSuchBucket":
		return fmt.Errorf("there is no bucket %s: make it, or correct the address: %w", r.BucketName, err)
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "Forbidden":
		return fmt.Errorf("%w (look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, and at what the key may do with the bucket)", err)
	case "NoSuchKey", "NotFound":
		return blob.ErrNotFound
	default:
		if r.StatusCode == http.StatusNotFound {
			return blob.ErrNotFound
		}
	}
	return err
}

func (s *Store) wrap(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s s3://%s/%s%s: %w", what, s.bucket, s.prefix, name, err)
}

func (s *Store) info(name string, o minio.ObjectInfo) blob.Info {
	generation, _ := strconv.ParseUint(o.UserMetadata[metaGeneration], 10, 64) // 0: none of ours
	return blob.Info{Name: name, Size: o.Size, Tag: blob.Tag(o.ETag), Modified: o.LastModified, Meta: blob.Meta{
		ContentType: o.ContentType, ContentEncoding: o.Metadata.Get("Content-Encoding"), CacheControl: o.Metadata.Get("Cache-Control"), Generation: generation}}
}

// Open goes on where an answer is cut, as long as the object stays the same.
func (s *Store) Open(ctx context.Context, name string, off, n int64) (io.ReadCloser, blob.Info, error) {
	if err := blob.Check(name); err != nil {
		return nil, blob.Info{}, err
	}
	if n == 0 {
		o, err := s.client.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
		return io.NopCloser(strings.NewReader("")), s.info(name, o), s.wrap("look at", name, known(err))
	}
	body, info, err := s.get(ctx, name, off, n, "")
	if err != nil {
		return nil, info, s.wrap("read", name, err)
	}
	end := info.Size
	if n > 0 {
		end = min(end, off+n)
	}
	return &reader{ctx: ctx, s: s, name: name, tag: info.Tag, body: body, at: off, end: end}, info, nil
}

func (s *Store) get(ctx context.Context, name string, off, n int64, tag blob.Tag) (io.ReadCloser, blob.Info, error) {
	var o minio.GetObjectOptions
	if tag != "" {
		o.SetMatchETag(string(tag))
	}
	switch {
	case n > 0:
		o.SetRange(off, off+n-1)
	case off > 0:
		o.SetRange(off, 0)
	}
	body, at, header, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, o)
	if err != nil {
		return nil, blob.Info{Name: name}, known(err)
	}
	info := s.info(name, at)
	if _, total, ok := strings.Cut(header.Get("Content-Range"), "/"); ok {
		if info.Size, err = strconv.ParseInt(total, 10, 64); err != nil {
			return nil, info, errors.Join(fmt.Errorf("the answer's range is %q", header.Get("Content-Range")), body.Close())
		}
	} else if off > 0 || n > 0 && at.Size > n {
		return nil, info, errors.Join(errors.New("the server answers a range with all"), body.Close())
	}
	return body, info, nil
}

type reader struct {
	ctx     context.Context
	s       *Store
	name    string
	tag     blob.Tag
	body    io.ReadCloser
	at, end int64
	cut     int
}

func (r *reader) Read(p []byte) (int, error) {
	if r.at >= r.end {
		return 0, io.EOF
	}
	n, err := r.body.Read(p[:min(int64(len(p)), r.end-r.at)])
	r.at += int64(n)
	if err == nil || r.at >= r.end {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if r.cut++; r.cut >= tries || r.ctx.Err() != nil {
		return n, r.s.wrap("read", r.name, err)
	}
	_ = r.body.Close() // it has failed
	body, _, again := r.s.get(r.ctx, r.name, r.at, r.end-r.at, r.tag)
	if again != nil {
		r.body = io.NopCloser(strings.NewReader(""))
		return n, r.s.wrap("read", r.name, errors.Join(err, again))
	}
	r.body = body
	return n, nil
}

func (r *reader) Close() error { return r.body.Close() }

// Delete asks for 1,000 objects at a time.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	objects := make([]minio.ObjectInfo, len(names))
	for i, name := range names {
		if err := blob.Check(name); err != nil {
			return err
		}
		objects[i].Key = s.prefix + name
	}
	results, err := s.client.RemoveObjectsWithIter(ctx, s.bucket, slices.Values(objects), minio.RemoveObjectsOptions{})
	if err != nil {
		return err
	}
	var all error
	for r := range results {
		if err := known(r.Err); err != nil && !errors.Is(err, blob.ErrNotFound) && all == nil {
			all = s.wrap("remove", strings.TrimPrefix(r.ObjectName, s.prefix), err) // the first of them
		}
	}
	return cmp.Or(all, ctx.Err())
}

// List asks for one page after the other.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		o := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, MaxKeys: s.page}
		if after != "" {
			o.StartAfter = s.prefix + after
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		for object := range s.client.ListObjectsIter(ctx, s.bucket, o) {
			if object.Err != nil {
				yield(blob.Info{}, s.wrap("list", prefix, known(object.Err)))
				return
			}
			if !yield(s.info(strings.TrimPrefix(object.Key, s.prefix), object), nil) {
				return
			}
		}
	}
}
