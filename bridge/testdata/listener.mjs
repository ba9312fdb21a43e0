// Prints what a client hears, a line for each line of a notification; at first "open".
//   node listener.mjs NODE_MODULES eventsource STREAM
//   node listener.mjs NODE_MODULES pubsubhubbub TOPIC HUB
import { createHmac } from "node:crypto";
import { createRequire } from "node:module";

const [modules, client, topic, hub] = process.argv.slice(2);
const load = createRequire(modules + "/package.json");
if (client === "eventsource") {
  const { EventSource } = load("eventsource");
  const stream = new EventSource(topic);
  stream.onopen = () => console.log("open");
  stream.addEventListener("change", (e) => console.log(e.data));
} else {
  const { createServer } = load("pubsubhubbub");
  const listener = createServer({ secret: "a secret" });
  listener.on("listen", () => {
    listener.callbackUrl = "http://127.0.0.1:" + listener.server.address().port + "/";
    listener.subscribe(topic, hub, (error) => error && console.log(String(error)));
    // The client sends this one, and forgets it: it would check with the other.
    listener.secret = createHmac("sha1", listener.secret).update(topic).digest("hex");
  });
  listener.on("subscribe", () => console.log("open"));
  listener.on("denied", (e) => console.log(String(e.error)));
  listener.on("feed", (e) => console.log(e.feed.toString()));
  listener.listen(0, "127.0.0.1");
}
