package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/jobs"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// said answers a form: the script shows the text, and a browser without scripts goes to the page.
func (d *Dashboard) said(w http.ResponseWriter, r *http.Request, text, to string) {
	if r.Header.Get("X-Dashboard") == "" {
		http.Redirect(w, r, rootOf(r)+to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]string{"said": text, "to": to}) // the reader may be gone
}

// refuse answers a form with an error.
func (d *Dashboard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Header.Get("X-Dashboard") == "" {
		d.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(map[string]string{"said": sentence(webguard.MaskedText(err.Error()))}) // the reader may be gone
}

// limited bounds a form.
func limited(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		return &statusError{http.StatusBadRequest, "The form cannot be read.", ""}
	}
	return nil
}

func (d *Dashboard) begin(w http.ResponseWriter, r *http.Request, action, name string, args any) {
	run, joined, err := d.b.Begin(context.WithoutCancel(r.Context()), action, name, "dashboard", args)
	if err != nil {
		if errors.Is(err, bridge.ErrRemoved) || errors.Is(err, bridge.ErrOtherHeld) || errors.Is(err, bridge.ErrUnchanged) {
			err = &statusError{http.StatusConflict, sentence(err.Error()), ""}
		}
		d.refuse(w, r, err)
		return
	}
	id := strconv.FormatUint(run.ID, 10)
	text := jobName(run.Job) + " begins: run " + id + "."
	if busy := slices.ContainsFunc(d.b.Runner().Active(), func(other jobs.Run) bool { return other.Subject == run.Subject && other.ID != run.ID }); joined || busy {
		text = jobName(run.Job) + " is queued: run " + id + "."
	}
	d.said(w, r, text, "runs/"+id)
}

func (d *Dashboard) actOnSet(w http.ResponseWriter, r *http.Request) {
	name, err := d.setNamed(r)
	if err == nil {
		err = limited(w, r)
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	switch action := r.PathValue("action"); action {
	case "scan":
		d.begin(w, r, action, name, nil)
	case "accept":
		d.accept(w, r, action, name, "sets/"+name, d.b.SetHeld)
	case "pause", "resume":
		d.pause(w, r, name, "sets/"+name, bridge.PauseSet(r.Context(), d.b, name, action == "pause"))
	default:
		d.refuse(w, r, notFound("There is no such action on a set."))
	}
}

func (d *Dashboard) actOnDestination(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	err := limited(w, r)
	if err == nil && !slices.Contains(d.b.Destinations(), name) {
		err = notFound("There is no destination " + name + ".")
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	switch action := r.PathValue("action"); action {
	case "sync", "audit", "repair":
		d.begin(w, r, action, name, nil)
	case "full":
		d.begin(w, r, "sync", name, bridge.SyncArgs{Full: true})
	case "pause", "resume":
		d.pause(w, r, name, "destinations/"+name, d.b.Pause(r.Context(), name, action == "pause"))
	case "accept":
		d.accept(w, r, "let-go", name, "destinations/"+name, d.b.DestinationHeld)
	default:
		d.refuse(w, r, notFound("There is no such action on a mirror."))
	}
}

// pause answers after a schedule was paused or resumed.
func (d *Dashboard) pause(w http.ResponseWriter, r *http.Request, name, link string, err error) {
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	d.said(w, r, name+" "+map[bool]string{true: "is paused.", false: "goes on."}[r.PathValue("action") == "pause"], link)
}

// accept lets go what is held, if the number of deletions was typed, and the same is still held.
func (d *Dashboard) accept(w http.ResponseWriter, r *http.Request, action, name, link string, read func(context.Context, string, string, int) (*bridge.Held, error)) {
	h, err := read(r.Context(), name, "", 0)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	typed := strings.Map(func(c rune) rune {
		if strings.ContainsRune(" .,'\u00a0\u202f", c) {
			return -1
		}
		return c
	}, r.PostFormValue("number"))
	if typed != strconv.FormatInt(h.Deletions, 10) {
		if r.Header.Get("X-Dashboard") != "" {
			d.refuse(w, r, errors.New("nothing is accepted: this is not the number of deletions"))
			return
		}
		http.Redirect(w, r, rootOf(r)+link+"/held?typed="+url.QueryEscape(r.PostFormValue("number")), http.StatusSeeOther)
		return
	}
	d.begin(w, r, action, name, bridge.AcceptArgs{ID: r.PostFormValue("id")})
}

func (d *Dashboard) cancel(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err == nil {
		err = d.b.Runner().Cancel(id)
	}
	if err != nil {
		d.refuse(w, r, &statusError{http.StatusConflict, "Run " + r.PathValue("id") + " is not under way.", ""})
		return
	}
	d.said(w, r, "Run "+r.PathValue("id")+" is being cancelled.", "runs/"+r.PathValue("id"))
}
