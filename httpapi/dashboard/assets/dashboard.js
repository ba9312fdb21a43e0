"use strict";
// Renews the page in place from the server's own pages, at each event of a run and every ten seconds.
// Elements are matched by data-key or id, and changed only where they differ: focus, selection, open
// details and typed text stay.
(() => {
  const page = document.documentElement, $ = id => document.getElementById(id);
  const plain = address => { const u = new URL(address, location.href); u.username = u.password = ""; return u.href }; // fetch takes no address with a password
  const base = plain(page.dataset.root), assets = page.dataset.assets;

  const keyOf = n => n.nodeType === 1 && (n.dataset.key || n.getAttribute("id")) || ""; // the id of a form may be its input of that name
  const own = (e, name) => name === "open" && e.nodeName === "DETAILS" || name === "value" && e === document.activeElement || name === "title" && e.nodeName === "TIME";

  function patch(have, want) {
    if (have.nodeType !== 1) { if (have.data !== want.data) have.data = want.data; return }
    for (const { name } of [...have.attributes]) if (!want.hasAttribute(name) && !own(have, name)) have.removeAttribute(name);
    for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value && !own(have, name)) have.setAttribute(name, value);
    if (have.nodeName !== "SELECT") patchChildren(have, want); // the choice is the reader's
  }

  function patchChildren(have, want) {
    const wanted = new Set([...want.children].map(keyOf)), known = new Map();
    for (const e of [...have.children]) {
      const key = keyOf(e);
      if (key && !wanted.has(key)) e.remove(); else if (key) known.set(key, e);
    }
    let at = have.firstChild;
    for (const w of [...want.childNodes]) {
      const key = keyOf(w), h = key ? known.get(key) : at && !keyOf(at) && at.nodeName === w.nodeName ? at : null;
      if (!h || h.nodeName !== w.nodeName) { have.insertBefore(document.importNode(w, true), at); continue }
      while (key && at && !keyOf(at)) { const next = at.nextSibling; at.remove(); at = next } // an element that is moved loses its selection
      if (h === at) at = at.nextSibling; else if (have.moveBefore) have.moveBefore(h, at); else have.insertBefore(h, at);
      patch(h, w);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next }
  }

  document.addEventListener("pointerover", e => { // the reader's own time, for those who point at it
    const t = e.target.closest?.("time[title]");
    if (t) t.title = new Date(t.dateTime).toLocaleString();
  });

  const usual = 10000; // ms between two looks
  let asOf = new Date(), isLost = false, busy = false, again = false, timer = 0, due = 0, last = 0, pause = 0;

  function reloaded() { // once a minute: it may not help
    const before = Number(sessionStorage.getItem("reloaded") || 0);
    if (Date.now() - before < 60000) return false;
    sessionStorage.setItem("reloaded", Date.now());
    location.reload();
    return true;
  }

  async function refresh() {
    if (busy) { again = true; return }
    rest();
    busy = true; last = Date.now();
    try {
      const r = await fetch(plain(location.href), { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(5000) });
      const doc = new DOMParser().parseFromString(await r.text(), "text/html");
      if (!doc.getElementById("main")) { // of a daemon that starts, or of a login page
        if ((r.ok || r.status === 401) && reloaded()) return;
        throw new Error(r.statusText);
      }
      if (doc.documentElement.dataset.assets !== assets && reloaded()) return; // of another version
      found();
      document.title = doc.title;
      page.dataset.worst = doc.documentElement.dataset.worst;
      for (const id of ["icon", "sentence", "main", "foot"]) if ($(id) && doc.getElementById(id)) patch($(id), doc.getElementById(id));
      asOf = new Date();
    } catch (e) { lost() }
    busy = false;
    if (again && !isLost) soon(); else look(isLost ? pause : usual);
    again = false;
  }

  // One timer leads to the next look. A hidden tab has none.
  function look(after) {
    const at = Date.now() + after;
    if (document.hidden || timer && due <= at) return;
    rest();
    due = at;
    timer = setTimeout(refresh, after);
  }
  function rest() { clearTimeout(timer); timer = 0 }
  function soon() { look(Math.max(150, last + 1000 - Date.now())) } // at most once a second

  const cross = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='3' fill='%23666'/><path d='M4 4l8 8M12 4l-8 8' stroke='white' stroke-width='2.5'/></svg>";
  function lost() {
    pause = Math.min(isLost ? 2 * pause : 1500, usual);
    if (isLost) return;
    isLost = true;
    page.classList.add("lost");
    document.title = "✖ lost · rsbridge";
    $("icon").href = cross;
    $("lost").hidden = false;
    $("lost").textContent = "The daemon does not answer. This page is as of " + asOf.toLocaleTimeString() + ".";
  }
  function found() {
    if (!isLost) return;
    isLost = false;
    page.classList.remove("lost");
    $("lost").hidden = true;
  }

  // One stream of events for all tabs, open while one of them is seen. A browser without shared workers
  // has one a tab.
  const worker = base + "assets/stream.js?" + assets;
  const stream = window.SharedWorker ? new SharedWorker(worker, { name: "rsbridge" }).port : new Worker(worker);
  stream.onmessage = e => { if (!isLost || e.data === "run") if (busy) again = true; else soon() }; // a lost daemon has its own pauses
  const seen = is => {
    stream.postMessage(is);
    if (is) refresh(); else rest();
  };
  document.addEventListener("visibilitychange", () => seen(!document.hidden));
  addEventListener("pagehide", () => seen(false));
  addEventListener("pageshow", e => { if (e.persisted) seen(!document.hidden) });
  stream.postMessage(!document.hidden);
  look(usual);

  function say(text, to) {
    $("say").textContent = text;
    if (to) { const a = document.createElement("a"); a.href = base + to; a.textContent = "See it"; $("say").append(" ", a) }
  }
  document.addEventListener("submit", async e => {
    const form = e.target;
    if (form.method !== "post" || form.dataset.plain) return;
    e.preventDefault();
    const button = e.submitter;
    if (button) button.disabled = true;
    try {
      const r = await fetch(plain(form.action), { method: "POST", headers: { "X-Dashboard": "1" }, body: new URLSearchParams(new FormData(form)) });
      const told = await r.json();
      if (r.ok && form.dataset.go) { location.href = base + told.to; return }
      say(told.said || told.detail || r.statusText, told.to);
      if (r.ok && form.closest("details.ask")) form.closest("details.ask").open = false;
    } catch (err) { say("The daemon does not answer.") }
    if (button) button.disabled = false;
    refresh();
  });
  document.addEventListener("keydown", e => {
    if (e.key === "/" && !e.ctrlKey && !e.metaKey && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.nodeName)) { e.preventDefault(); $("q").focus() }
  });
})();
