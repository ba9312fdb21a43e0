package faces

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rsbridge/rsbridge/changetrack"
	"github.com/rsbridge/rsbridge/internal/kv"
)

// secondTime is an OAI-PMH datestamp; dayTime the coarser one required of every repository.
const (
	secondTime = "2006-01-02T15:04:05Z"
	dayTime    = "2006-01-02"
)

func datestamp(t time.Time) string { return t.UTC().Format(secondTime) }

// oaiError is an error of the protocol; the answer is 200 all the same.
type oaiError struct{ code, text string }

func (e *oaiError) Error() string { return e.code + ": " + e.text }

func badArgument(format string, a ...any) error {
	return &oaiError{"badArgument", fmt.Sprintf(format, a...)}
}

var (
	errNoRecords = &oaiError{"noRecordsMatch", "No records match the request."}
	errToken     = &oaiError{"badResumptionToken", "The resumption token is none of this repository, or it is no longer good: begin the list anew."}
	errNoID      = &oaiError{"idDoesNotExist", "There is no item of that identifier."}
	errFormat    = &oaiError{"cannotDisseminateFormat", "The formats are oai_dc and rdf; rdf is not there for an item that RDF/XML cannot express."}
)

// oaiArgs are the arguments of an accepted request.
type oaiArgs struct {
	verb, identifier, metadataPrefix, set, from, until, token string
}

// oaiVerbs are the arguments of each verb; ! marks the required ones.
var oaiVerbs = map[string][]string{
	"Identify":            {},
	"ListMetadataFormats": {"identifier"},
	"ListSets":            {"resumptionToken"},
	"GetRecord":           {"identifier!", "metadataPrefix!"},
	"ListIdentifiers":     {"metadataPrefix!", "from", "until", "set", "resumptionToken"},
	"ListRecords":         {"metadataPrefix!", "from", "until", "set", "resumptionToken"},
}

// parseOAI checks the arguments by the protocol. It returns the verb even if it refuses the rest.
func parseOAI(form url.Values) (a oaiArgs, err error) {
	verbs := form["verb"]
	if len(verbs) != 1 {
		return a, &oaiError{"badVerb", "Exactly one verb is needed: Identify, ListMetadataFormats, ListSets, ListIdentifiers, ListRecords or GetRecord."}
	}
	takes, ok := oaiVerbs[verbs[0]]
	if !ok {
		return a, &oaiError{"badVerb", "The verb is none of OAI-PMH."}
	}
	a.verb = verbs[0]
	fields := map[string]*string{"identifier": &a.identifier, "metadataPrefix": &a.metadataPrefix, "set": &a.set,
		"from": &a.from, "until": &a.until, "resumptionToken": &a.token}
	for name, values := range form {
		if name == "verb" {
			continue
		}
		if !slices.Contains(takes, name) && !slices.Contains(takes, name+"!") {
			return a, badArgument("%s takes no argument %q.", a.verb, clip(name))
		}
		if len(values) != 1 || values[0] == "" {
			return a, badArgument("The argument %s needs one value.", name)
		}
		*fields[name] = values[0]
	}
	if a.token != "" {
		if len(form) != 2 {
			return a, badArgument("resumptionToken stands alone with the verb.")
		}
		return a, nil
	}
	for _, name := range takes {
		if name, needed := strings.CutSuffix(name, "!"); needed && *fields[name] == "" {
			return a, badArgument("%s needs the argument %s.", a.verb, name)
		}
	}
	return a, nil
}

func clip(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

// window reads from and until as bounds of a record's last change: not before from, and before the
// second. The zero time is no bound.
func (a oaiArgs) window() (from, before time.Time, err error) {
	read := func(s string) (t time.Time, day bool, err error) {
		if t, err = time.Parse(secondTime, s); err == nil && len(s) == len(secondTime) {
			return t, false, nil
		}
		if t, err = time.Parse(dayTime, s); err == nil {
			return t, true, nil
		}
		return t, false, badArgument("%q is no datestamp; write 2026-05-01 or 2026-05-01T12:00:00Z.", clip(s))
	}
	var fromDay, untilDay bool
	if a.from != "" {
		if from, fromDay, err = read(a.from); err != nil {
			return from, before, err
		}
	}
	if a.until != "" {
		if before, untilDay, err = read(a.until); err != nil {
			return from, before, err
		}
		if untilDay {
			before = before.AddDate(0, 0, 1)
		} else {
			before = before.Add(time.Second)
		}
	}
	if a.from != "" && a.until != "" {
		if fromDay != untilDay {
			return from, before, badArgument("from and until differ in granularity.")
		}
		if !from.Before(before) {
			return from, before, badArgument("from is later than until.")
		}
	}
	return from, before, nil
}

// oai answers /SET/oai.
func (q *request) oai(ctx context.Context, path string) error {
	if path != "" && path != "/" {
		return notFound("There is nothing at this address.").hint("The repository is at %s/oai.", q.base)
	}
	form, err := q.form()
	var args oaiArgs
	if err == nil {
		args, err = parseOAI(form)
	}
	var body func(x *xmlWriter) error
	if err == nil {
		switch args.verb {
		case "Identify":
			body, err = q.identify(ctx)
		case "ListMetadataFormats":
			body, err = q.metadataFormats(ctx, args.identifier)
		case "ListSets":
			body, err = q.listSets(args)
		case "GetRecord":
			body, err = q.getRecord(ctx, args)
		default:
			body, err = q.list(ctx, args)
		}
	}
	var refused *oaiError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	q.send(reply{contentType: "text/xml; charset=utf-8", cache: "no-cache", write: func(b *bufio.Writer) error {
		x := &xmlWriter{w: b}
		x.raw(xml.Header)
		x.raw(`<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">` + "\n")
		x.element("responseDate", datestamp(q.settled))
		x.raw("<request")
		if refused == nil || refused.code != "badVerb" && refused.code != "badArgument" {
			for _, name := range []string{"verb", "identifier", "metadataPrefix", "from", "until", "set", "resumptionToken"} {
				if v := form[name]; len(v) == 1 {
					x.attr(name, v[0])
				}
			}
		}
		x.raw(">")
		x.text(q.base + "/oai")
		x.raw("</request>\n")
		if refused != nil {
			x.raw("<error")
			x.attr("code", refused.code)
			x.raw(">")
			x.text(refused.text)
			x.raw("</error>\n")
		} else {
			x.raw("<" + args.verb + ">\n")
			if err := body(x); err != nil {
				return err
			}
			x.raw("</" + args.verb + ">\n")
		}
		x.raw("</OAI-PMH>\n")
		return nil
	}})
	return nil
}

// form reads the arguments, of a POST from its body too.
func (q *request) form() (url.Values, error) {
	form, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return nil, badArgument("The query has a broken escape.")
	}
	if q.r.Method == http.MethodPost {
		data, err := io.ReadAll(io.LimitReader(q.r.Body, 64<<10+1))
		if err != nil {
			return nil, &statusError{code: http.StatusBadRequest, reason: "The body of the request could not be read."}
		}
		more, err := url.ParseQuery(string(data))
		if err != nil || len(data) > 64<<10 {
			return nil, badArgument("The body is no form of at most 64 KiB.")
		}
		for name, values := range more {
			form[name] = append(form[name], values...)
		}
	}
	return form, nil
}

func (q *request) identify(ctx context.Context) (func(x *xmlWriter) error, error) {
	earliest, err := q.earliestDatestamp(ctx)
	if err != nil {
		return nil, err
	}
	email := q.Email
	if email == "" {
		host := "localhost"
		if u, err := url.Parse(q.base); err == nil && u.Hostname() != "" {
			host = u.Hostname()
		}
		email = "admin@" + host
	}
	deleted := "persistent"
	if q.kept() > 0 {
		deleted = "transient"
	}
	return func(x *xmlWriter) error {
		x.element("repositoryName", q.Title)
		x.element("baseURL", q.base+"/oai")
		x.element("protocolVersion", "2.0")
		x.element("adminEmail", email)
		x.element("earliestDatestamp", datestamp(earliest))
		x.element("deletedRecord", deleted)
		x.element("granularity", "YYYY-MM-DDThh:mm:ssZ")
		x.element("compression", "gzip")
		return nil
	}, nil
}

// earliestDatestamp is a lower bound of the times of all records. Times only grow, so it is
// computed once: from the first change of a whole log, later from the oldest known state.
func (q *request) earliestDatestamp(ctx context.Context) (time.Time, error) {
	q.mu.Lock()
	t := q.set.earliest
	q.mu.Unlock()
	if !t.IsZero() {
		return t, nil
	}
	if tail, _ := q.view.Tail(); tail == 0 {
		c, ok, err := q.change(ctx, 1)
		if err != nil || !ok {
			return q.settled, err // nothing yet: not remembered
		}
		t = c.Time
	} else {
		_, t = q.view.Head()
		for st, err := range q.view.Known(ctx, [32]byte{}, [32]byte{}) {
			if err == nil {
				err = q.r.Context().Err()
			}
			if err != nil {
				return t, err
			}
			if last, ok := lastOf(st); ok && last.time.Before(t) {
				t = last.time
			}
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set.earliest = t
	return t, nil
}

// lastOf is the last change of an entity; false when it is no longer known.
func lastOf(st changetrack.State) (member, bool) {
	switch {
	case st.Current != nil:
		return member{sequence: st.Current.Sequence, time: st.Current.Time, entity: st.Entity, version: st.Current}, true
	case st.Deleted != nil:
		return member{sequence: st.Deleted.Sequence, time: st.Deleted.Time, entity: st.Entity}, true
	}
	return member{}, false
}

func (q *request) item(ctx context.Context, identifier string) (member, error) {
	entity, ok := entityOf(identifier)
	if !ok {
		return member{}, errNoID
	}
	st, err := q.view.Entity(ctx, entity)
	if errors.Is(err, kv.ErrNotFound) {
		return member{}, errNoID
	}
	if err != nil {
		return member{}, err
	}
	m, ok := lastOf(st)
	if !ok {
		return member{}, errNoID
	}
	return m, nil
}

func (q *request) metadataFormats(ctx context.Context, identifier string) (func(x *xmlWriter) error, error) {
	formats := oaiFormats
	if identifier != "" {
		m, err := q.item(ctx, identifier)
		if err != nil {
			return nil, err
		}
		if _, err := q.metadata(ctx, m, "rdf"); errors.Is(err, errFormat) {
			formats = formats[:1]
		} else if err != nil {
			return nil, err
		}
	}
	return func(x *xmlWriter) error {
		for _, f := range formats {
			x.raw("<metadataFormat>\n")
			x.element("metadataPrefix", f.prefix)
			x.element("schema", f.schema)
			x.element("metadataNamespace", f.namespace)
			x.raw("</metadataFormat>\n")
		}
		return nil
	}, nil
}

func (q *request) listSets(a oaiArgs) (func(x *xmlWriter) error, error) {
	if a.token != "" {
		return nil, errToken
	}
	return func(x *xmlWriter) error {
		x.raw("<set>\n")
		x.element("setSpec", q.Name)
		x.element("setName", q.Title)
		x.raw("</set>\n")
		return nil
	}, nil
}

func (q *request) getRecord(ctx context.Context, a oaiArgs) (func(x *xmlWriter) error, error) {
	if !knownFormat(a.metadataPrefix) {
		return nil, errFormat
	}
	m, err := q.item(ctx, a.identifier)
	if err != nil {
		return nil, err
	}
	r := record{member: m}
	if r.metadata, err = q.metadata(ctx, m, a.metadataPrefix); err != nil {
		return nil, err
	}
	return func(x *xmlWriter) error { q.writeRecord(x, r, true); return nil }, nil
}
