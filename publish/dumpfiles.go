package publish

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"
	"strings"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/publish/kept"
	"github.com/rsbridge/rsbridge/rdfres"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// dumpedFile is a file fetched for a Resource Dump.
type dumpedFile struct {
	url    string
	file   *os.File // at its beginning
	crc    uint32
	length int64
}

// dumpFiles fetches the files of a set, one at a time into a file, within DumpFiles. leftOut
// is the number of the others.
func (s *set) dumpFiles(ctx context.Context, snap *snapshot, add func(*dumpedFile, *resourcesync.Entry) error) (leftOut int64, err error) {
	if s.cfg.DumpFiles <= 0 || s.cfg.FetchFiles == nil {
		return snap.view.Files(ctx)
	}
	fetch, view, left := s.cfg.FetchFiles(), snap.source(), s.cfg.DumpFiles
	temp, err := s.files.Temp()
	if err != nil {
		return 0, err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	for st, err := range snap.view.CurrentFiles(ctx, rdfres.Digest{}, rdfres.Digest{}) {
		if err != nil {
			return leftOut, err
		}
		if left <= 0 || st.Current.Length > left {
			leftOut++
			continue
		}
		f, err := fetchInto(ctx, temp, fetch, &st, left)
		if ctx.Err() != nil {
			return leftOut, context.Cause(ctx)
		}
		if err != nil {
			s.p.log.Warn("a file is left out of the Resource Dump", "set", s.cfg.Name, "file", st.URL, "why", err)
			leftOut++
			continue
		}
		left -= f.length
		e, err := s.entries.fileEntry(ctx, view, &st)
		if err == nil {
			e.Meta.Length = f.length
			err = add(f, &e)
		}
		if err != nil {
			return leftOut, err
		}
	}
	return leftOut, nil
}

// fetchInto fetches a file into temp, over its former content.
func fetchInto(ctx context.Context, temp *os.File, fetch FetchFile, st *changetrack.FileState, most int64) (*dumpedFile, error) {
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if err := temp.Truncate(0); err != nil {
		return nil, err
	}
	sum := crc32.NewIEEE()
	if err := fetch(ctx, st.URL, st.Current, most, io.MultiWriter(temp, sum)); err != nil {
		return nil, err
	}
	length, err := temp.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = temp.Seek(0, io.SeekStart)
	}
	return &dumpedFile{st.URL, temp, sum.Sum32(), length}, err
}

// addFile puts a file into the package, named by its key and with the suffix of its address.
func addFile(f *kept.Writer, d *dumpedFile, e *resourcesync.Entry) error {
	address, _, _ := strings.Cut(d.url, "?")
	suffix := strings.ToLower(path.Ext(address))
	if len(suffix) > 8 || strings.ContainsFunc(strings.TrimPrefix(suffix, "."), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }) {
		suffix = ""
	}
	return f.AddStored(fmt.Sprintf("/files/%s%s", changetrack.FileKey(d.url), suffix), d.file, d.crc, d.length, e)
}
