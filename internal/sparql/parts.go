package sparql

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rsbridge/rsbridge/rdfres"
)

// Parts reads the rows of a pattern in answers short enough for the store: by batches of keys, the
// values of one of its variables. A batch with an answer as long as the limit is halved. A key with
// more rows than one answer may hold is read by the hash of its rows, a sixteenth at a time. Rows
// of a cut answer are never given, as far as a limit is known. Confirm, or a comparison with a
// count, finds rows left out silently.
type Parts struct {
	Client  *Client
	As      Reading // format of SELECT; "" as Client.Select chooses
	Pattern string  // ends in a space; binds Key and Others in each row
	Key     string  // variable with its mark, such as ?s
	Others  []string
	Limit   int64 // rows of the longest answer; 0 none is known
	Batch   int   // keys of one query, halved after a refusal; default 200
	Confirm bool  // Of and Blanks compare each answer with the store's count, and repeat a shorter one
	Pages   bool  // nobody else writes there: a key with many rows may be read in pages
}

const (
	partRows    = 50_000 // of one answer in memory
	keysOnce    = 20_000
	deepestHash = 5 // hexadecimal digits
)

// errCut reports an answer with perhaps more rows.
var errCut = errors.New("the answer is as long as the store's row limit")

// limit is how many rows an answer may not have.
func (p *Parts) limit() int64 {
	n := int64(partRows)
	for _, l := range []int64{p.Limit, p.Client.MaxRows()} {
		if l > 0 {
			n = min(n, l)
		}
	}
	return n
}

// hashed is a filter for the rows with a hash of some variables beginning with this prefix. A blank
// node has no string.
func hashed(prefix string, vars ...string) string {
	if prefix == "" {
		return ""
	}
	var parts []string
	for _, v := range vars {
		parts = append(parts, "IF(isBlank("+v+"), \"\", STR("+v+"))")
	}
	text := parts[0]
	if len(parts) > 1 {
		text = "CONCAT(" + strings.Join(parts, ", ") + ")"
	}
	return "FILTER(STRSTARTS(MD5(" + text + "), \"" + prefix + "\")) "
}

// Keys gives the IRIs of Key, some thousand at a time. If they disagree with the store's own count,
// it reads sixteen parts with counts of their own, and fails if those disagree too. A key may come
// twice.
func (p *Parts) Keys(ctx context.Context, f func(keys []string) error) error {
	var failed error // of f
	give := func(keys []string) error {
		failed = f(keys)
		return failed
	}
	err := p.keysBelow(ctx, "", 1, give)
	if failed != nil || !errors.Is(err, errDisagree) {
		return err
	}
	return eachDigit("", func(prefix string) error { return p.keysBelow(ctx, prefix, 2, f) })
}

// keysBelow gives the keys with a hash beginning with a prefix.
func (p *Parts) keysBelow(ctx context.Context, prefix string, tries int, f func(keys []string) error) error {
	count := "SELECT (COUNT(DISTINCT " + p.Key + ") AS ?n) WHERE { " + p.Pattern + "FILTER(isIRI(" + p.Key + ")) " + hashed(prefix, p.Key) + "}"
	_, err := p.agreed(ctx, count, "different values of "+p.Key, tries, func(counted int64) (total int64, err error) {
		depth := len(prefix)
		for n := counted; n > min(keysOnce, p.limit()*2/3); n /= 16 {
			depth++
		}
		var walk func(prefix string) error
		walk = func(prefix string) error {
			if len(prefix) < depth {
				return eachDigit(prefix, walk)
			}
			var keys []string
			err := p.rows(ctx, "SELECT DISTINCT "+p.Key+" WHERE { "+p.Pattern+"FILTER(isIRI("+p.Key+")) "+hashed(prefix, p.Key)+"}", 1, func(row Row) error {
				keys = append(keys, row[0].IRI())
				return nil
			})
			if err != nil {
				if p.narrower(err, prefix) {
					return eachDigit(prefix, walk)
				}
				return err
			}
			total += int64(len(keys))
			if len(keys) == 0 {
				return nil
			}
			return f(keys)
		}
		err = walk(prefix)
		return total, err
	})
	return err
}

// All gives every row with an IRI as Key, Key first, then Others. The store's count decides the
// number of parts, by the hash of Key. A part cut or refused is requested again in smaller ones,
// and only that part. Rows that disagree with the store's counts before and after come once more,
// in sixteen parts with counts of their own. It fails when one of those disagrees twice. again is
// the number of rows read in vain. A row is valid during the call.
func (p *Parts) All(ctx context.Context, f func(Row) error) (again int64, err error) {
	own := *p
	own.Pattern += "FILTER(isIRI(" + p.Key + ")) "
	if again, err = own.below(ctx, "", 1, f); !errors.Is(err, errDisagree) {
		return again, err
	}
	return again, eachDigit("", func(prefix string) error {
		n, err := own.below(ctx, prefix, 2, f)
		again += n
		return err
	})
}

// below gives the rows whose Key has a hash with a prefix.
func (p *Parts) below(ctx context.Context, prefix string, tries int, f func(Row) error) (again int64, err error) {
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + p.Pattern + hashed(prefix, p.Key) + "}"
	return p.agreed(ctx, count, "rows", tries, func(counted int64) (total int64, err error) {
		depth := len(prefix)
		for n := counted; n > p.limit()*2/3; n /= 16 {
			depth++
		}
		row := func(row Row) error {
			total++
			return f(row)
		}
		var walk func(prefix string) error
		walk = func(prefix string) error {
			if len(prefix) < min(depth, deepestHash) {
				return eachDigit(prefix, walk)
			}
			err := p.part(ctx, "", hashed(prefix, p.Key), false, row) // all are counted above
			switch {
			case err == nil || !mayPass(err):
				return err
			case len(prefix) < deepestHash: // many keys may have a row alike, as of a class
				return eachDigit(prefix, walk)
			}
			return p.restricted(ctx, "", hashed(prefix, p.Key), false, row)
		}
		if counted > 0 {
			err = walk(prefix)
		}
		return total, err
	})
}

// errDisagree reports a difference between the rows and the store's count.
var errDisagree = fmt.Errorf("%w", ErrTruncated)

// agreed reads until the number of rows agrees with the counts before and after. read is given the
// store's count and gives its number of rows. It is tried a few times, since others may write to
// the store meanwhile. again is the number of rows read in vain.
func (p *Parts) agreed(ctx context.Context, count, what string, tries int, read func(counted int64) (int64, error)) (again int64, err error) {
	before, err := p.Client.Count(ctx, count)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	for ; ; tries-- {
		total, err := read(before)
		if err != nil {
			return again, err
		}
		after := before
		if total != before {
			if after, err = p.Client.Count(ctx, count); err != nil {
				return again, fmt.Errorf("count: %w", err)
			}
		}
		if total >= min(before, after) && total <= max(before, after) {
			return again, nil
		}
		again += total
		if tries <= 1 {
			return again, fmt.Errorf("%w: %d %s came in parts; the store counts %d before and %d after", errDisagree, total, what, before, after)
		}
		before = after
	}
}

func eachDigit(prefix string, f func(string) error) error {
	for _, c := range "0123456789abcdef" {
		if err := f(prefix + string(c)); err != nil {
			return err
		}
	}
	return nil
}

// mayPass tells whether less may come whole.
func mayPass(err error) bool {
	return errors.Is(err, errCut) || errors.Is(err, errDisagree) || IsTooLarge(err)
}

// narrower tells whether a failed part is requested again in smaller parts.
func (p *Parts) narrower(err error, prefix string) bool {
	return len(prefix) < deepestHash && mayPass(err)
}

// Of gives the rows of some keys, Key first, then Others. A row is valid during
// the call.
func (p *Parts) Of(ctx context.Context, keys []string, f func(Row) error) error {
	if p.Batch <= 0 {
		p.Batch = 200
	}
	most := p.Batch // of keys with few rows
	for len(keys) > 0 {
		n := min(p.Batch, len(keys))
		values := make([]string, n)
		for i, k := range keys[:n] {
			iri, err := NameIRI(k)
			if err != nil { // no VALUES can name it
				if i > 0 {
					n, values = i, values[:i]
					break
				}
				if err := p.restricted(ctx, "FILTER(isIRI("+p.Key+") && STR("+p.Key+") = "+EscapeString(k)+") ", "", p.Confirm, f); err != nil {
					return fmt.Errorf("%s: %w", k, err)
				}
				keys, n = keys[1:], 0
				break
			}
			values[i] = iri
		}
		if n == 0 {
			continue
		}
		restrict := "VALUES " + p.Key + " { " + strings.Join(values, " ") + " } "
		err := p.part(ctx, restrict, "", p.Confirm, f)
		switch {
		case err == nil:
			p.Batch = min(2*p.Batch, most)
		case n > 1 && mayPass(err):
			p.Batch = max(1, n/2)
			if IsTooLarge(err) {
				most = p.Batch
			}
			continue
		case n == 1 && p.narrower(err, ""):
			if err := p.many(ctx, keys[0], restrict, f); err != nil {
				return fmt.Errorf("%s: %w", keys[0], err)
			}
		default:
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// many gives the rows of a key with more of them than one answer may hold.
func (p *Parts) many(ctx context.Context, key, restrict string, f func(Row) error) error {
	if p.Pages {
		given := map[[sha256.Size]byte]int{}
		err := p.pages(ctx, restrict, given, f)
		if err == nil || !mayPass(err) {
			return err
		}
		all := f
		f = func(row Row) error {
			if h := rowHash(row); given[h] > 0 {
				given[h]--
				return nil
			}
			return all(row)
		}
	}
	p.tellMany(key)
	return p.restricted(ctx, restrict, "", p.Confirm, f)
}

// pages gives the rows of a key in successive answers: a store looks at each row about once. It
// owes no order, and a change of order leaves out some rows and repeats others. So a repeated row,
// and another number than the store's count, are errDisagree. So are blank nodes, whose labels hold
// within one answer.
func (p *Parts) pages(ctx context.Context, restrict string, given map[[sha256.Size]byte]int, f func(Row) error) error {
	count := "SELECT (COUNT(*) AS ?n) WHERE { " + restrict + p.Pattern + "}"
	most := func() int64 { return max(1, p.limit()-1) }
	_, err := p.agreed(ctx, count, "rows", 1, func(counted int64) (total int64, err error) {
		for total < counted {
			size := most()
			got, err := p.answer(ctx, restrict, "", fmt.Sprintf(" OFFSET %d LIMIT %d", total, size))
			if errors.Is(err, errCut) && most() < size { // the store has told its limit
				continue
			}
			if err != nil {
				return total, err
			}
			if int64(len(got)) < min(size, counted-total) {
				return total, fmt.Errorf("%w: %d rows came of a page of %d", errDisagree, len(got), size)
			}
			for _, row := range got {
				h := rowHash(row)
				if given[h] > 0 || slices.ContainsFunc(row, func(t rdfres.Term) bool { return t.Kind() == rdfres.KindBlank }) {
					return total, fmt.Errorf("%w: pages have a row twice, or blank nodes", errDisagree)
				}
				if err := f(row); err != nil {
					return total, err
				}
				given[h]++
				total++
			}
		}
		return total, nil
	})
	return err
}

func rowHash(row Row) (h [sha256.Size]byte) {
	var b []byte
	for _, t := range row {
		b = append(append(b, t...), 0)
	}
	return sha256.Sum256(b)
}

// tellMany logs a key with more rows than one answer may hold: for each of its parts the store
// looks at all of them, perhaps for hours.
func (p *Parts) tellMany(key string) {
	if n := p.limit(); n < partRows { // else the limit is our own memory's
		p.Client.conn.log.Warn("more triples of one entity than the store gives in one answer: they are read in parts, for each of which the store looks at all of them, which takes long; raise its row limit above their number (Virtuoso: ResultSetMaxRows)",
			"entity", key, "limit", n)
	}
}

// Blanks gives the rows with a blank node as Key. Labels hold within one answer, and these may be
// several.
func (p *Parts) Blanks(ctx context.Context, f func(Row) error) error {
	return p.restricted(ctx, "", "FILTER(isBlank("+p.Key+")) ", p.Confirm, f)
}

// restricted reads the rows between two restrictions, in as many parts as needed.
func (p *Parts) restricted(ctx context.Context, before, after string, confirm bool, f func(Row) error) error {
	var walk func(prefix string) error
	walk = func(prefix string) error {
		err := p.part(ctx, before, after+hashed(prefix, p.Others...), confirm, f)
		if err != nil && p.narrower(err, prefix) {
			return eachDigit(prefix, walk)
		}
		return err
	}
	return walk("")
}

// part reads one answer into memory and gives its rows when it was not cut.
func (p *Parts) part(ctx context.Context, before, after string, confirm bool, f func(Row) error) error {
	var got []Row
	read := func(counted int64) (n int64, err error) {
		if counted >= p.limit() {
			return 0, errCut
		}
		got, err = p.answer(ctx, before, after, "")
		return int64(len(got)), err
	}
	var err error
	if confirm {
		_, err = p.agreed(ctx, "SELECT (COUNT(*) AS ?n) WHERE { "+before+p.Pattern+after+"}", "rows", 2, read)
	} else {
		_, err = read(0)
	}
	if err != nil {
		return err
	}
	for _, row := range got {
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// answer reads the rows between two restrictions into memory, none after an error.
func (p *Parts) answer(ctx context.Context, before, after, page string) (got []Row, err error) {
	err = p.rows(ctx, "SELECT "+p.Key+" "+strings.Join(p.Others, " ")+" WHERE { "+before+p.Pattern+after+"}"+page, 1+len(p.Others), func(row Row) error {
		got = append(got, slices.Clone(row))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// rows reads one answer; errCut if it may go on.
func (p *Parts) rows(ctx context.Context, query string, columns int, f func(Row) error) error {
	sol, err := p.Client.SelectAs(ctx, query, p.As)
	if err != nil {
		return err
	}
	if len(sol.Vars) != columns {
		sol.Close()
		return fmt.Errorf("the store answered with %d columns, not %d", len(sol.Vars), columns)
	}
	n := int64(0)
	for row, err := range sol.Rows {
		if err != nil {
			return err
		}
		if n++; n >= p.limit() {
			return errCut
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}
