"use strict";
// The one stream of events of all tabs. It is open while a tab is seen. After a failure it is opened again
// after growing pauses.
const ports = new Map(), usual = 1000, longest = 10000; // seen or not; pauses in ms
let stream = null, timer = 0, pause = usual, opened = 0;
const tell = what => { for (const [port, seen] of ports) if (seen) port.postMessage(what) };
function tend() {
  const wanted = [...ports.values()].includes(true);
  if (wanted && !stream && !timer) {
    stream = new EventSource(new URL("../api/v1/events", self.location.href));
    stream.onopen = () => { opened = Date.now(); if (pause > usual) tell("run") }; // some were missed
    stream.addEventListener("run", () => tell("run"));
    stream.onerror = () => {
      shut();
      if (opened && Date.now() - opened > longest) pause = usual; // it was a good one
      opened = 0;
      timer = setTimeout(() => { timer = 0; tend() }, pause);
      pause = Math.min(2 * pause, longest);
      tell("error");
    };
  } else if (!wanted) shut();
}
function shut() {
  if (stream) stream.close();
  stream = null;
}
function add(port) {
  ports.set(port, false);
  port.onmessage = m => { ports.set(port, m.data); tend() };
}
if ("onconnect" in self) self.onconnect = e => add(e.ports[0]); else add(self);
