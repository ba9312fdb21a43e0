"use strict";
// The one stream of events of all tabs. It is open while a tab is seen.
const ports = new Map(); // seen or not
let stream = null;
const tell = what => { for (const [port, seen] of ports) if (seen) port.postMessage(what) };
function tend() {
  const wanted = [...ports.values()].includes(true);
  if (wanted && !stream) {
    stream = new EventSource(new URL("../api/v1/events", self.location.href));
    stream.addEventListener("run", () => tell("run"));
    stream.onerror = () => {
      tell("error");
      if (stream && stream.readyState === EventSource.CLOSED) { stream = null; setTimeout(tend, 2000) } // it was refused, and does not try again by itself
    };
  } else if (!wanted && stream) {
    stream.close();
    stream = null;
  }
}
self.onconnect = e => {
  const port = e.ports[0];
  ports.set(port, false);
  port.onmessage = m => { ports.set(port, m.data); tend() };
};
