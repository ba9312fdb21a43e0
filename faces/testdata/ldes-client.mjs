// Reads an event stream with ldes-client and prints one JSON object a line: each
// member with its quads, and "poll" when everything was read and it waits.
//
//   node ldes-client.mjs FOLDER URL follow|once none|ascending|descending [STATE]
//
// FOLDER is where npm installed ldes-client.
import { pathToFileURL } from "node:url";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, mode, order, statePath] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(folder, "node_modules", path)));
const { replicateLDES, intoConfig } = await load("ldes-client/dist/lib/client.js");
const { Writer } = createRequire(join(folder, "node_modules", "n3", "package.json"))("n3");

const write = (o) => process.stdout.write(JSON.stringify(o) + "\n");
const client = replicateLDES(intoConfig({ url, polling: mode === "follow", pollInterval: 200, statePath }), order);
client.on("poll", () => write({ poll: true }));
client.on("error", (e) => { console.error("error", e); process.exit(1); });
const reader = client.stream({ highWaterMark: 10 }).getReader();
for (;;) {
  const { value, done } = await reader.read();
  if (value) write({ id: value.id.value, quads: new Writer({ format: "N-Quads" }).quadsToString(value.quads) });
  if (done) break;
}
