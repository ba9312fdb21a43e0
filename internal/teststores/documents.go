package teststores

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// Documents holds each ResourceSync document (*.xml) of a folder to the XML
// Schemas and has the reference library (resync, Python) read it: capability, up,
// and of each entry address, change, length and links. It gives their number.
func Documents(t testing.TB, dir string) int {
	t.Helper()
	schemas := filepath.Dir(Shared(t, "fixtures/xsd/urlset.xsd"))
	out, err := exec.CommandContext(t.Context(), Python(t), "-c", documents, dir, schemas).CombinedOutput()
	said := regexp.MustCompile(`^read (\d+)\n$`).FindSubmatch(out)
	if err != nil || said == nil {
		t.Fatalf("documents: %v\n%.4000s", err, out)
	}
	n, _ := strconv.Atoi(string(said[1]))
	return n
}

// An urlset without url is forbidden by the schema and allowed by the specification.
// It stands where nothing else says the same (docs/reference/published.md): in the open Change List
// before the first change, in a Capability List before the first scan, in the Resource List
// and the manifest of the dump of a set that holds nothing. Anywhere else it is a
// fault. The library knows none of the notification capabilities, which are a
// specification of their own.
const documents = `
import io, logging, pathlib, sys, warnings
from lxml import etree
from resync.sitemap import Sitemap
from resync.resource_container import ResourceContainer
S = "{http://www.sitemaps.org/schemas/sitemap/0.9}"; R = "{http://www.openarchives.org/rs/terms/}"
schemas, n = {}, 0
class Words(logging.Handler):
    said = []
    def emit(self, record): self.said.append(record.getMessage())
logging.getLogger().addHandler(Words())
for p in sorted(pathlib.Path(sys.argv[1]).glob("*.xml")):
    raw = p.read_bytes(); root = etree.fromstring(raw); kind = etree.QName(root).localname; n += 1
    cap = root.find(R + "md").get("capability"); entries = root.findall(S + "url") + root.findall(S + "sitemap")
    md = root.find(R + "md")
    bare = kind == "urlset" and (cap in ("capabilitylist", "resourcelist", "resourcedump-manifest") or cap == "changelist" and md.get("until") is None)
    if entries or not bare:
        if kind not in schemas: schemas[kind] = etree.XMLSchema(etree.parse(sys.argv[2] + "/" + kind + ".xsd"))
        if not schemas[kind].validate(root): print(p, cap, schemas[kind].error_log.last_error)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        s = Sitemap(); c = s.parse_xml(fh=io.BytesIO(raw), resources=ResourceContainer(), capability=cap, sitemapindex=kind == "sitemapindex")
    said = [str(w.message) for w in said if w.category is not DeprecationWarning] + [x for x in Words.said if "-notification' in" not in x]; Words.said = []
    read = list(c)
    if len(read) != len(entries) or s.parsed_index != (kind == "sitemapindex") or said:
        print(p, cap, "has", len(entries), "entries, the reference library reads", len(read), said[:3])
    if c.capability != cap or c.up != next((l.get("href") for l in root.findall(R + "ln") if l.get("rel") == "up"), None): print(p, cap, "root read as", c.capability, c.up)
    for a, b in zip(read, entries):
        md = b.find(R + "md"); md = {} if md is None else md
        if a.uri != b.find(S + "loc").text or (a.change or None) != md.get("change") or (a.length is not None and str(a.length) != md.get("length")) or len(a.ln or []) != len(b.findall(R + "ln")): print(p, cap, a.uri, a.change, a.length, len(a.ln or [])); break
print("read", n)
`
