package main

import (
	"encoding/json"
	"os/user"
	"time"

	"github.com/rsbridge/rsbridge/bridge"
	"github.com/rsbridge/rsbridge/internal/access"
	"github.com/rsbridge/rsbridge/internal/webguard"
)

// action is an action of this command's user, who stands in From.
func action(what, detail string) access.Action {
	from := ""
	if u, err := user.Current(); err == nil {
		from = u.Username
	}
	return access.Action{Time: time.Now(), Who: access.LocalName, From: from, Action: what, Detail: detail}
}

// acted logs an action on a state that no daemon holds: a daemon logs those that it is asked for. The action
// is done, so a fault is a warning.
func acted(a *app, cfg *bridge.Config, did access.Action) {
	if err := access.OpenLog(access.Folder(cfg.Folder())).Add(did); err != nil {
		a.log.Warn("an action is not in the log of actions", "action", did.Action, "error", err)
	}
}

// begun is the action of a command that begins a run, with its arguments or why it began none.
func begun(what string, args any, run bridge.Run, refused error) access.Action {
	did := action(what, "")
	did.Run = run.ID
	if raw, err := json.Marshal(args); err == nil && args != nil && string(raw) != "{}" {
		did.Detail = string(raw)
	}
	if refused != nil {
		did.Detail = "refused: " + webguard.MaskedText(refused.Error())
	}
	return did
}
