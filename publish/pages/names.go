package pages

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/internal/kv"
	"github.com/rsbridge/rsbridge/publish/search"
)

const (
	patience    = 3 * time.Second // of a page for the index of names
	mostFound   = 50
	mostBrowsed = 100
	mostLetters = 100
)

// ErrMark is a mark that no link has.
var ErrMark = errors.New("no mark of a page")

// Name is an entity in the alphabet, or found.
type Name struct{ Label, IRI, Href string }

// Letter is a beginning of names.
type Letter struct {
	Name, Href string
	Current    bool
}

// Names is the page of a search, or a part of the alphabet.
type Names struct {
	Frame   Frame
	Heading string
	Letters []Letter
	Names   []Name
	Next    string // address of the following names
	First   string // address of the beginning
	Making  string // the index is being made, so far; "": it is there
	Search  bool   // the page of a search
	Asked   bool   // a search was made
	Cut     bool   // there may be more than those found
}

// names renders the page; making tells that it has no names yet.
func (s *Set) names(p *Names, query string) (page []byte, making bool, err error) {
	p.Frame = s.frame(p.Heading)
	p.Frame.Query = query
	page, err = write("names.html", p)
	return page, p.Making != "", err
}

// ready waits a moment for the index. false: p says how far it is.
func (s *Set) ready(ctx context.Context, p *Names, index *search.Index) (bool, error) {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done, whole, err := index.Ready(wait)
	if !whole {
		p.Making = Digits(done) + " of " + Count(s.View.Resources(), "description", "descriptions")
	}
	return whole, err
}

// list puts entities on a page: those of this state.
func (s *Set) list(ctx context.Context, p *Names, hits []search.Hit) error {
	for _, h := range hits {
		st, err := s.View.EntityByKey(ctx, h.Key)
		if errors.Is(err, kv.ErrNotFound) || err == nil && st.Current == nil {
			continue // the index is ahead
		}
		if err != nil {
			return err
		}
		if h.Label == "" {
			h.Label = localName(st.Entity)
		}
		p.Names = append(p.Names, Name{h.Label, st.Entity, s.Generic(st.Entity) + ".html"})
	}
	return nil
}

// Search makes the page of a search. found is the page of an entity named by its IRI.
func (s *Set) Search(ctx context.Context, index *search.Index, query string) (page []byte, found string, making bool, err error) {
	query = strings.TrimSpace(clip.Middle(query))
	if query != "" {
		if st, err := s.View.Entity(ctx, query); err == nil {
			return nil, s.Generic(st.Entity) + ".html", false, nil
		}
	}
	p := &Names{Heading: "Search in " + s.Title, Search: true, Asked: query != ""}
	if p.Asked {
		whole, err := s.ready(ctx, p, index)
		if err == nil && whole {
			var hits []search.Hit
			if hits, p.Cut, err = index.Find(ctx, query, mostFound); err == nil {
				err = s.list(ctx, p, hits)
			}
		}
		if err != nil {
			return nil, "", false, err
		}
	}
	page, making, err = s.names(p, query)
	return page, "", making, err
}

// Browse makes a page of the alphabet: the names with a beginning, after the mark of the page before.
func (s *Set) Browse(ctx context.Context, index *search.Index, letter, mark string) (page []byte, making bool, err error) {
	after, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil {
		return nil, false, ErrMark
	}
	p := &Names{Heading: s.Title + ", A to Z"}
	whole, err := s.ready(ctx, p, index)
	if err != nil {
		return nil, false, err
	}
	if !whole {
		return s.names(p, "")
	}
	self := s.URL + "/browse"
	letters, err := index.Letters(ctx, mostLetters)
	if err != nil {
		return nil, false, err
	}
	for _, l := range letters {
		p.Letters = append(p.Letters, Letter{Name: strings.ToUpper(l), Href: self + "?letter=" + url.QueryEscape(l), Current: l == letter})
	}
	hits, err := index.Browse(ctx, letter, string(after), mostBrowsed+1)
	if err != nil {
		return nil, false, err
	}
	query := url.Values{}
	if letter != "" {
		query.Set("letter", letter)
	}
	at := func() string {
		if len(query) == 0 {
			return self
		}
		return self + "?" + query.Encode()
	}
	if mark != "" {
		p.First = at()
	}
	if len(hits) > mostBrowsed {
		hits = hits[:mostBrowsed]
		query.Set("after", base64.RawURLEncoding.EncodeToString([]byte(hits[mostBrowsed-1].Mark)))
		p.Next = at()
	}
	if err := s.list(ctx, p, hits); err != nil {
		return nil, false, err
	}
	return s.names(p, "")
}

// Alphabet makes a page of the alphabet for files, at path below the set: browse.html, or page n of a letter,
// browse/LETTER.html or browse/LETTER.n.html. mark is from next, the address of the page to be made after
// it; "" ends the alphabet. ErrNoPage: there is no such page.
func (s *Set) Alphabet(ctx context.Context, index *search.Index, path, mark string) (page []byte, next string, making bool, err error) {
	after, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil {
		return nil, "", false, ErrMark
	}
	p := &Names{Heading: s.Title + ", A to Z"}
	whole, err := s.ready(ctx, p, index)
	if err != nil {
		return nil, "", false, err
	}
	if !whole {
		page, making, err = s.names(p, "")
		return page, "", making, err
	}
	letters, err := index.Letters(ctx, mostLetters)
	if err != nil {
		return nil, "", false, err
	}
	name, n, ok := pageOfLetter(path)
	at := slices.IndexFunc(letters, func(l string) bool { return letterFile(l) == name })
	if name != "" && at < 0 || !ok || (n > 1) != (mark != "") {
		return nil, "", false, ErrNoPage
	}
	address := func(i, n int) string { return PageOf(s.URL+"/browse/"+letterFile(letters[i]), n) }
	for i, l := range letters {
		if l = strings.ToUpper(l); i == mostLetters-1 {
			l += "…" // with all letters after it
		}
		p.Letters = append(p.Letters, Letter{Name: l, Href: address(i, 1), Current: i == at})
	}
	beginning := ""
	switch {
	case at < 0:
	case at < len(letters)-1:
		beginning = letters[at]
	case mark == "": // the last one goes on to the end
		after = []byte(letters[at])
	}
	hits, err := index.Browse(ctx, beginning, string(after), mostBrowsed+1)
	switch {
	case err != nil:
		return nil, "", false, err
	case at < 0 && len(hits) > mostBrowsed:
		hits = nil // too many for one page: each letter has its own
	case at >= 0 && len(hits) > mostBrowsed:
		hits = hits[:mostBrowsed]
		p.Next = address(at, n+1)
		next = p.Next + "?after=" + base64.RawURLEncoding.EncodeToString([]byte(hits[mostBrowsed-1].Mark))
	}
	if n > 1 {
		p.First = address(at, 1)
	}
	if next == "" && at+1 < len(letters) {
		next = address(at+1, 1)
	}
	if err := s.list(ctx, p, hits); err != nil {
		return nil, "", false, err
	}
	page, _, err = s.names(p, "")
	return page, next, false, err
}

// letterFile names the file of a letter.
func letterFile(letter string) string {
	r, _ := utf8.DecodeRuneInString(letter)
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return letter
	}
	return fmt.Sprintf("u%04x", r)
}

// pageOfLetter reads browse.html as page 1 of "", and the path of a letter.
func pageOfLetter(path string) (name string, n int, ok bool) {
	name, ok = strings.CutSuffix(path, ".html")
	if name == "browse" {
		return "", 1, ok
	}
	name, below := strings.CutPrefix(name, "browse/")
	name, digits, more := strings.Cut(name, ".")
	if n = 1; more {
		var err error
		if n, err = strconv.Atoi(digits); err != nil || n < 2 || strconv.Itoa(n) != digits {
			return "", 0, false
		}
	}
	return name, n, ok && below && name != ""
}
