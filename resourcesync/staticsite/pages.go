package staticsite

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rsbridge/rsbridge/internal/pace"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// This file is about pages for people beside the pages of documents.

const (
	mostPage  = 64 << 20 // bytes of a page
	mostWaits = 100_000  // for the index of names: three days, as an answer without it comes after three seconds
	startPage = "index.html"
	ourMark   = `<meta name="generator" content="rsbridge">`
)

// relative is a page with relative links to the files of the site: they work at any address, and from a disk.
// Addresses of other sites stay. A folder has its start page named, since not all servers find it.
func (s *site) relative(address string, body io.Reader) (io.Reader, error) {
	page, err := io.ReadAll(io.LimitReader(body, mostPage+1))
	if err != nil {
		return nil, err
	}
	if len(page) > mostPage {
		return nil, fmt.Errorf("the page has more than %d bytes", mostPage)
	}
	base := `href="` + strings.ReplaceAll(html.EscapeString(s.base.String()), "+", "&#43;") + "/"
	up := `href="` + strings.Repeat("../", strings.Count(strings.TrimPrefix(address, s.base.String()+"/"), "/"))
	if !strings.HasSuffix(up, "/") {
		up += "./"
	}
	return strings.NewReader(strings.NewReplacer(base+`"`, up+startPage+`"`, base, up).Replace(string(page))), nil
}

// alphabet writes the pages of names from A to Z, if the source has any. A Link header of each leads to the next.
// The index of names may be in the making: each request waits for it a while, and where the source does not, they
// come once a second.
func (s *site) alphabet(ctx context.Context) error {
	again := pace.Pacer{Rate: 1}
	for next := s.base.String() + "/" + s.o.Set + "/browse.html"; next != ""; {
		page, _, _ := strings.Cut(next, "?")
		if s.read[page] {
			return fmt.Errorf("%s is its own next page: %w", page, ErrMoved)
		}
		h, err := s.fetchFrom(ctx, page, next, nil)
		if err != nil || h == nil {
			return err
		}
		if h.Get("Refresh") != "" {
			if s.waits--; s.waits < 0 {
				return fmt.Errorf("%s has no names yet: their index is still being made", page)
			}
			if err := again.Wait(ctx); err != nil {
				return err
			}
			continue
		}
		s.read[page] = true
		s.rep.Resources++
		links := resourcesync.HeaderLinks(h.Values("Link"), "next")
		if next = ""; len(links) > 0 {
			next = links[0]
		}
	}
	return nil
}

// start writes the start pages: of the folder, with its sets, and of the set. A start page of the folder
// by somebody else stays.
func (s *site) start(ctx context.Context, sets []string) error {
	root := s.base.String() + "/"
	own := root + s.o.Set + "/"
	h, err := s.fetchFrom(ctx, own+startPage, own+"about.html", nil)
	if err != nil {
		return err
	}
	if h != nil {
		s.read[own+startPage] = true
		s.rep.Resources++
	}
	have, err := os.ReadFile(filepath.Join(s.o.Dir, startPage))
	if err == nil && !strings.Contains(string(have), ourMark) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if h, err = s.fetchFrom(ctx, root+startPage, root+"?"+url.Values{"set": sets}.Encode(), nil); h != nil {
		s.rep.Resources++
	}
	return err
}
