package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/bridge/declared"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/fairconn"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/push"
	"github.com/rsbridge/rsbridge/rdfres"
)

// route is one line of the API's table.
type route struct {
	method, path string
	role         access.Role // the least one that may use it
	summary      string
	query        []param
	body         any // a value of the body's type; nil: none
	status       int // of success
	result       any // a value of the answer's type, for the description
	do           func(c *gin.Context) (any, error)
}

// param is a query parameter; check is nil when any text will do.
type param struct {
	name, doc string
	required  bool
	schema    object
}

var (
	paramQueue  = yesno("queue", "true: when a run of this kind is under way, queue one that starts after it instead of answering 409")
	paramWait   = yesno("wait", "true: answer when the run has ended")
	paramEntity = param{name: "entity", doc: "IRI of the entity", schema: object{"type": "string"}}
	paramAs     = param{name: "as", doc: "format of the answer; default: the one that is kept", schema: object{"type": "string", "enum": formats}}
	paramState  = oneOf("state", "only those in this state", bridge.States)
	runStates   = []string{jobs.Queued, jobs.Running, jobs.Done, jobs.Failed, jobs.Cancelled, jobs.Interrupted}
	formats     = []string{string(rdfres.JSONLD), string(rdfres.NTriples), string(rdfres.Turtle), string(rdfres.RDFXML)}
)

func yesno(name, doc string) param {
	return param{name: name, doc: doc, schema: object{"type": "boolean", "default": false}}
}

func oneOf[T ~string](name, doc string, values []T) param {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return param{name: name, doc: doc, schema: object{"type": "string", "enum": all}}
}

func before(doc string) param {
	return param{name: "before", doc: doc, schema: object{"type": "integer", "minimum": 0, "maximum": 1 << 53}}
}

func text(name, doc, pattern string) param {
	return param{name: name, doc: doc, schema: object{"type": "string", "pattern": pattern}}
}

func upTo(most, usual int) param {
	return param{name: "limit", doc: "how many at most", schema: object{"type": "integer", "minimum": 1, "maximum": most, "default": usual}}
}

// timeSchema is of the times that every reader of a date-time takes: in UTC, whole days included.
var timeSchema = object{"type": "string", "format": "date-time", "pattern": `^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?Z$`}

// point is a parameter that is a point in the log: a sequence or a time; "" is none.
func point(name, doc string) param {
	return param{name: name, doc: doc, schema: object{"anyOf": []object{{"type": "string", "pattern": "^[0-9]{0,18}$"}, timeSchema}}}
}

func at(doc string) param { return param{name: "at", doc: doc, schema: timeSchema} }

// no is the body of an action without arguments.
type no struct{}

func (a *api) routes() []route {
	const get, post, put, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	const read, operate, admin = access.Read, access.Operate, access.Admin
	queue := []param{paramQueue}
	entity := paramEntity
	entity.required, entity.schema = true, object{"type": "string", "minLength": 1}
	return []route{
		{get, "/api/v1/status", read, "how all sets and destinations stand", nil, nil, 200, bridge.Status{},
			func(c *gin.Context) (any, error) { return a.b.Status(c.Request.Context()) }},
		{get, "/api/v1/sets", read, "the sets", []param{paramState}, nil, 200, []bridge.SetStatus{}, a.sets},
		{get, "/api/v1/sets/:name", read, "one set", nil, nil, 200, bridge.SetStatus{}, a.set},
		{get, "/api/v1/sets/:name/mirrors", read, "the mirrors that have reported their positions in the last week, by name, and how far each is behind", nil, nil, 200, []push.Mirror{}, a.mirrors},
		{get, "/api/v1/sets/:name/changes", read, "the log after a sequence or a time, oldest first; next is the value of since that goes on",
			[]param{point("since", "a sequence (digits alone) or a time; left out itself; default: the beginning"), upTo(10000, 1000)},
			nil, 200, bridge.Changes{}, a.changes},
		{get, "/api/v1/sets/:name/resources", read, "current resources in the order of their keys, or one entity; next is the value of after that goes on",
			[]param{paramEntity, text("after", "the key after which to begin", `^([0-9a-f]{64})?$`), upTo(10000, 100)}, nil, 200, Resources{}, a.resources},
		{get, "/api/v1/sets/:name/description", read, "the representation of one entity, now or at a time",
			[]param{entity, at("as it was at this time"), paramAs}, nil, 200, representation{}, a.description},
		{get, "/api/v1/sets/:name/diff", read, "what changed in the description of one entity between two points of the log, each a sequence or a time",
			[]param{entity, point("from", "after this sequence, or at this time; default: the version before"), point("to", "as from; default: now")}, nil, 200, bridge.Diff{}, a.diff},
		{post, "/api/v1/sets/:name/scan", operate, "look for changes now: in everything or, with a body, in the entities that it names; those are always queued", queue, bridge.ScanArgs{}, 202, jobs.Run{}, a.begin("scan", "scan")},
		{put, "/api/v1/sets/:name", admin, "declare a set, or change its declaration: 201 or 200, and 202 while runs under way are waited for", nil, bridge.Set{}, 200, Definition{}, a.declare(declared.Sets)},
		{remove, "/api/v1/sets/:name", admin, "take back the declaration of a set: it stays public as it was, until it is forgotten", nil, nil, 200, Definition{}, a.declare(declared.Sets)},
		{get, "/api/v1/sets/:name/definition", read, "the declaration of a set, without its secrets", nil, nil, 200, Definition{}, a.definition(declared.Sets)},
		{post, "/api/v1/sets/:name/pause", operate, "pause the scans; requested ones still run", nil, no{}, 200, bridge.SetStatus{}, a.pauseSet(true)},
		{post, "/api/v1/sets/:name/resume", operate, "go on with the scans", nil, no{}, 200, bridge.SetStatus{}, a.pauseSet(false)},
		{post, "/api/v1/sets/:name/touch", operate, "entities that may have changed: the next run describes them again; it has all that is named before it begins", nil, TouchArgs{}, 202, jobs.Run{}, a.begin("touch", "hint")},
		{get, "/api/v1/sets/:name/held", read, "what is held, and the entities that it would delete; next is the value of after that goes on; 404 when nothing is held",
			[]param{text("after", "the place after which to begin", setPlace.String()), upTo(10000, 100)}, nil, 200, bridge.Held{}, a.setHeld},
		{post, "/api/v1/sets/:name/accept", operate, "accept what is held; id: only if that is still so", queue, bridge.AcceptArgs{}, 202, jobs.Run{}, a.begin("accept", "scan")},
		{post, "/api/v1/sets/:name/rebase", admin, "publish at the configured addresses: close the old lists, begin new ones", queue, no{}, 202, jobs.Run{}, a.begin("rebase", "rebase")},
		{post, "/api/v1/sets/:name/forget", admin, "remove a set that is not configured any more: log, documents, records", queue, bridge.ForgetArgs{}, 202, jobs.Run{}, a.begin("forget-set", "forget-set")},
		{post, "/api/v1/sets/:name/move", admin, "give a set that is not configured any more the name of another one, which has no log yet", queue, bridge.MoveArgs{}, 202, jobs.Run{}, a.begin("move-set", "move-set")},
		{get, "/api/v1/destinations", read, "the destinations", []param{paramState}, nil, 200, []bridge.DestinationStatus{}, a.destinations},
		{get, "/api/v1/destinations/:name", read, "one destination", nil, nil, 200, bridge.DestinationStatus{}, a.destination},
		{put, "/api/v1/destinations/:name", admin, "declare a destination, or change its declaration: 201 or 200, and 202 while runs under way are waited for", nil, bridge.Destination{}, 200, Definition{}, a.declare(declared.Destinations)},
		{remove, "/api/v1/destinations/:name", admin, "take back the declaration of a destination: its mirror stays as it is, until it is forgotten", nil, nil, 200, Definition{}, a.declare(declared.Destinations)},
		{get, "/api/v1/destinations/:name/definition", read, "the declaration of a destination, without its secrets", nil, nil, 200, Definition{}, a.definition(declared.Destinations)},
		{get, "/api/v1/destinations/:name/description", read, "what the mirror has of one entity, now or, where versions are kept, at a time",
			[]param{entity, at("as it was at this time"), paramAs}, nil, 200, representation{}, a.mirrorDescription},
		{get, "/api/v1/destinations/:name/differences", read, "what is pending, failed, becomes nothing by map, or differed at the last audit; next is the value of after that goes on", []param{text("after", "the place after which to begin", differencePlace.String()), upTo(10000, 1000)}, nil, 200, Differences{}, a.differences},
		{get, "/api/v1/destinations/:name/not-rdf", read, "resources of the source that are no RDF, and where their files are; next is the value of after that goes on", []param{text("after", "the place after which to begin", otherPlace.String()), upTo(10000, 1000)}, nil, 200, NotRDF{}, a.notRDF},
		{get, "/api/v1/destinations/:name/held", read, "the deletions that are held; next is the value of after that goes on; 404 when none are",
			[]param{text("after", "the place after which to begin", destinationPlace.String()), upTo(10000, 100)}, nil, 200, bridge.Held{}, a.destinationHeld},
		{post, "/api/v1/destinations/:name/accept", operate, "let go what is held, and follow the source; id: only if that is still so", queue, bridge.AcceptArgs{}, 202, jobs.Run{}, a.begin("let-go", "sync")},
		{post, "/api/v1/destinations/:name/sync", operate, "follow the source now", queue, bridge.SyncArgs{}, 202, jobs.Run{}, a.begin("sync", "sync")},
		{post, "/api/v1/destinations/:name/audit", operate, "compare mirror and source now", queue, bridge.AuditArgs{}, 202, jobs.Run{}, a.begin("audit", "audit")},
		{post, "/api/v1/destinations/:name/repair", operate, "compare, and make equal", queue, no{}, 202, jobs.Run{}, a.begin("repair", "audit")},
		{post, "/api/v1/destinations/:name/pause", operate, "stop the schedule", nil, no{}, 200, bridge.DestinationStatus{}, a.pause(true)},
		{post, "/api/v1/destinations/:name/resume", operate, "start the schedule again", nil, no{}, 200, bridge.DestinationStatus{}, a.pause(false)},
		{post, "/api/v1/destinations/:name/forget", admin, "remove a destination that is not configured any more: what it owns in the store, its lines there, its records", queue, bridge.ForgetArgs{}, 202, jobs.Run{}, a.begin("forget-destination", "forget-destination")},
		{post, "/api/v1/destinations/:name/move", admin, "make a store the place of the mirror, which it holds already", queue, bridge.MoveArgs{}, 202, jobs.Run{}, a.begin("move-destination", "move-destination")},
		{post, "/api/v1/verify", operate, "read what is kept here, and compare it with its checksums", queue, bridge.VerifyArgs{}, 202, jobs.Run{}, a.begin("verify", "verify")},
		{post, "/api/v1/backup", admin, "the whole state as one tar file, for rsbridge restore; an answer without SHA256SUMS at its end is cut", nil, no{}, 200, archive{}, a.backup},
		{get, "/api/v1/jobs", read, "the jobs and their schedules", nil, nil, 200, []Job{}, a.jobs},
		{get, runsPath, read, "runs, newest first; next is the value of before that goes on",
			[]param{{name: "job", doc: "only runs of this job", schema: object{"type": "string"}}, oneOf("state", "only runs in this state", runStates), before("only runs before this id"), upTo(1000, 100)}, nil, 200, Runs{}, a.runs},
		{get, "/api/v1/runs/:id", read, "one run", []param{paramWait}, nil, 200, jobs.Run{}, a.run},
		{get, "/api/v1/runs/:id/log", read, "the newest lines of the log about a run, oldest first: 200 at most; kept as long as the run", nil, nil, 200, []jobs.Line{}, a.runLog},
		{post, "/api/v1/runs/:id/cancel", operate, "end a run; 409 when it has ended", nil, no{}, 202, jobs.Run{}, a.cancel},
		{get, actionsPath, admin, "actions of users, newest first; next is the value of before that goes on; for administrators",
			[]param{before("only actions before this id"), upTo(1000, 100)}, nil, 200, Actions{}, a.listActions},
		{get, "/api/v1/me", read, "the user of the request", nil, nil, 200, me{}, a.me},
		{get, "/api/v1/events", read, "server-sent events: every change of a run, as event: run with the run as data", nil, nil, 200, stream{}, a.events},
	}
}

// representation and stream stand in the table for answers in other formats than the API's JSON.
type (
	representation struct{}
	stream         struct{}
)

const maxBody = 1 << 20 // bytes of a request to the API

// handle checks the parameters, calls the route, and writes its answer.
func (a *api) handle(r route) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxBody)
		if p := r.checkQuery(c.Request.URL.RawQuery); p != nil {
			writeProblem(c, p)
			return
		}
		res, err := r.do(c)
		switch {
		case c.Writer.Written(): // a stream
		case err != nil:
			p := problem(err)
			if p.Status == http.StatusInternalServerError {
				a.log.Error("request failed", "method", r.method, "path", c.Request.URL.Path, "error", err)
			}
			writeProblem(c, p)
		default:
			c.Header("Cache-Control", "no-store")
			linkNext(c, res)
			status := r.status
			if d, ok := res.(Definition); ok {
				status = cmp.Or(d.status, status)
			}
			c.PureJSON(status, res)
		}
	}
}

// pager is an answer with more behind it: the parameter of the next page and its value, "" at the
// end.
type pager interface{ next() (param, value string) }

func (r Resources) next() (string, string)   { return "after", r.Next }
func (r Differences) next() (string, string) { return "after", r.Next }
func (r NotRDF) next() (string, string)      { return "after", r.Next }
func (r Runs) next() (string, string)        { return "before", decimal(r.Next) }
func (r Actions) next() (string, string)     { return "before", decimal(r.Next) }

// decimal is a number, "" for 0.
func decimal(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// linkNext links an answer with its next page (RFC 8288).
func linkNext(c *gin.Context, res any) {
	var param, value string
	switch r := res.(type) {
	case pager:
		param, value = r.next()
	case *bridge.Held:
		param, value = "after", r.Next
	case bridge.Changes:
		if r.More {
			param, value = "since", decimal(r.Next)
		}
	}
	if value != "" {
		q := c.Request.URL.Query()
		q.Set(param, value)
		c.Header("Link", "<?"+q.Encode()+`>; rel="next"`)
	}
}

// checkQuery checks the query string as a whole: each parameter is known and given once.
func (r route) checkQuery(raw string) *Problem {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return fail(http.StatusBadRequest, "the query string cannot be read: "+err.Error(), "")
	}
	var names []string
	for _, p := range r.query {
		names = append(names, p.name)
		if p.required && q.Get(p.name) == "" {
			return fail(http.StatusBadRequest, "the parameter "+p.name+" is missing: "+p.doc, "")
		}
		if all, ok := p.schema["enum"].([]string); ok && q.Has(p.name) && !slices.Contains(all, q.Get(p.name)) {
			return fail(http.StatusBadRequest, p.name+"="+q.Get(p.name)+" is none of "+strings.Join(all, ", "), "")
		}
		if v := q.Get(p.name); q.Has(p.name) && p.schema["type"] == "boolean" && v != "true" && v != "false" {
			return fail(http.StatusBadRequest, p.name+"="+v+" is neither true nor false", "")
		}
	}
	for k, v := range q {
		if !slices.Contains(names, k) {
			hint := "there are none here"
			if len(names) > 0 {
				hint = "allowed here: " + strings.Join(names, ", ")
			}
			return fail(http.StatusBadRequest, "the parameter "+k+" is not known", hint)
		}
		if len(v) > 1 {
			return fail(http.StatusBadRequest, "the parameter "+k+" is given more than once", "")
		}
	}
	return nil
}

// limit reads ?limit=, between 1 and most.
func limit(c *gin.Context, usual, most int) (int, error) {
	s, given := c.GetQuery("limit")
	if !given {
		return usual, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fail(http.StatusBadRequest, "limit="+s+" is no number between 1 and "+strconv.Itoa(most), "")
	}
	return n, nil
}

// hasNull tells whether a value of an object is null. encoding/json takes a null for an absent
// value.
func hasNull(object []byte) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(object, &values) != nil {
		return false // the reader of the object reports it
	}
	for _, v := range values {
		if string(v) == "null" {
			return true
		}
	}
	return false
}

// namedTwice gives a repeated field of an object, without regard to case; "" if there is none.
func namedTwice(object []byte) string {
	d, seen := json.NewDecoder(bytes.NewReader(object)), map[string]bool{}
	for depth, isKey := 0, false; ; {
		t, err := d.Token()
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if err != nil || depth == 0 {
			return ""
		}
		if depth != 1 {
			continue
		}
		if key, ok := t.(string); ok && isKey {
			if key = strings.ToLower(key); seen[key] {
				return key
			}
			seen[key] = true
		}
		isKey = !isKey
	}
}

// arguments reads the body of an action: nothing, or a JSON object with the
// fields of args. It returns nil when nothing was said.
func arguments(c *gin.Context, args any) (any, error) {
	body, err := readBody(c)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if body[0] != '{' {
		err = errors.New("it is no object")
	} else if hasNull(body) {
		err = errors.New("a value is null; leave the field out")
	} else if twice := namedTwice(body); twice != "" { // the first value would be lost
		err = fmt.Errorf("%q stands in it twice", twice)
	} else if err = d.Decode(args); err == nil && d.More() {
		err = errors.New("something follows the object")
	}
	if err != nil {
		return nil, fail(http.StatusBadRequest, "the body is not what is asked for here: "+err.Error(), "GET /openapi.json shows what is")
	}
	return args, nil
}

// readBody reads a body within its limits, without blanks around it.
func readBody(c *gin.Context) ([]byte, error) {
	body, err := io.ReadAll(c.Request.Body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, fail(http.StatusRequestEntityTooLarge, "the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", "")
	}
	if errors.Is(err, fairconn.ErrSlowBody) {
		return nil, fail(http.StatusRequestTimeout, err.Error(), "")
	}
	if err != nil {
		return nil, fail(http.StatusBadRequest, "the body cannot be read: "+err.Error(), "")
	}
	return bytes.TrimSpace(body), nil
}
