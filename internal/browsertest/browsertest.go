// Package browsertest opens pages in a real browser and holds them to WCAG.
package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/rsbridge/rsbridge/internal/teststores"
)

// Step is something done in a tab, such as a click.
type Step = chromedp.Action[chromedp.Void]

// View is a size of the window in pixels, and a scheme of colours.
type View struct {
	Name, Scheme  string
	Width, Height int64
}

// Views are a telephone and a wide window, dark and light. The first two show both sizes and both
// schemes.
var Views = []View{{"narrow", "dark", 390, 844}, {"wide", "light", 1280, 900}, {"narrow", "light", 390, 844}, {"wide", "dark", 1280, 900}}

// Tab is a window of a browser of its own. Steps that fail, or take more than patience together, end
// the test. Their error shows the page.
type Tab struct {
	t   testing.TB
	ctx context.Context
	axe string // its script
}

// patience is enough for steps on a busy machine.
const patience = 90 * time.Second

// Open starts a browser, which ends with the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	browser := teststores.Browser(t)
	axe, err := os.ReadFile(filepath.Join(teststores.Npm(t), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		teststores.Lack(t, "axe-core among the clients in JavaScript")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // it starts: its own time is not bounded by the first step
		t.Fatal(err)
	}
	return &Tab{t, ctx, string(axe)}
}

// Do takes steps in their order.
func (b *Tab) Do(steps ...Step) {
	b.t.Helper()
	Get(b, chromedp.Steps(steps...))
}

// Get is the value of an action.
func Get[T any](b *Tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
		defer cancel()
		page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
		b.t.Fatalf("%v, at %s", err, page)
	}
	return v
}

// Eval is the value of an expression in JavaScript. A promise is waited for.
func Eval[T any](b *Tab, expression string) T {
	b.t.Helper()
	return Get(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Text is the visible text of the first element found by a CSS selector.
func (b *Tab) Text(css string) string {
	b.t.Helper()
	return Get(b, chromedp.Text(chromedp.CSS(css)))
}

// Sees reports words that the page does not show.
func (b *Tab) Sees(words ...string) {
	b.t.Helper()
	text := b.Text("body")
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.t.Errorf("the page does not say %q:\n%s", w, text)
		}
	}
}

// Shown waits for a visible element by its XPath.
func Shown(xpath string) Step { return chromedp.WaitVisible(chromedp.Search(xpath)) }

// Click clicks the first element of an XPath as soon as all of them are visible.
func Click(xpath string) Step { return found(chromedp.Click(chromedp.Search(xpath))) }

// Type types keys into the element of a CSS selector.
func Type(css, keys string) Step { return found(chromedp.SendKeys(chromedp.CSS(css), keys)) }

// found repeats a step whose element left the page between the search and its use. Nothing was
// clicked or typed by then.
func found(step Step) Step {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		for {
			v, err := step(ctx, target)
			if gone := new(cdproto.Error); !errors.As(err, &gone) || !strings.Contains(gone.Message, "Could not find node") {
				return v, err
			}
		}
	}
}

// show gives the window a size and a scheme of colours.
func (b *Tab) show(view View) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(view.Width, view.Height))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.Scheme}},
	}); err != nil {
		b.t.Fatal(err)
	}
}

// Picture writes a small picture of the page for the docs, as WebP.
func (b *Tab) Picture(file string, view View) {
	b.t.Helper()
	b.show(view)
	quality := int64(80)
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
	if err == nil {
		err = os.WriteFile(file, shot.Data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Through shows the page in views, and calls f in each. A page wider than its window is an error.
// RSBRIDGE_SCREENSHOTS names a folder for pictures.
func (b *Tab) Through(name string, views []View, f func(View)) {
	b.t.Helper()
	for _, view := range views {
		b.show(view)
		if Eval[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth") {
			b.t.Errorf("%s, %s: the page is wider than its window", name, view.Name)
		}
		f(view)
		if dir := os.Getenv("RSBRIDGE_SCREENSHOTS"); dir != "" {
			file := filepath.Join(dir, fmt.Sprintf("%s-%s-%s.png", strings.ReplaceAll(name, " ", "-"), view.Name, view.Scheme))
			if err := os.WriteFile(file, Get(b, chromedp.CaptureScreenshot()), 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// violations are what axe finds in a page, as a list in JSON.
const violations = `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 150) + " " + n.any.map(a => a.message).join(" ")).join(" | "))))`

// Look holds the page to WCAG, narrow and wide, dark and light.
func (b *Tab) Look(name string) {
	b.t.Helper()
	views := Views[:2]
	if os.Getenv("RSBRIDGE_SCREENSHOTS") != "" {
		views = Views
	}
	b.Through(name, views, func(view View) {
		b.t.Helper()
		Eval[bool](b, "window.axe ? true : (() => {"+b.axe+"; return true})()")
		var faults []string
		if err := json.Unmarshal([]byte(Eval[string](b, violations)), &faults); err != nil {
			b.t.Fatal(err)
		}
		for _, f := range faults {
			b.t.Errorf("%s, %s, %s: %s", name, view.Name, view.Scheme, f)
		}
	})
}
