"""Applies the patches of each update (JSON, one a line) to what was before, and
compares with what was published: jsonpatch for RFC 6902, the reader below for RDF
Patch. Prints how many there were."""
import base64, hashlib, json, sys

import jsonpatch


def sha(data):
    return "sha-256:" + hashlib.sha256(data).hexdigest()


def lines(text):
    out = text.split("\n")
    assert out.pop() == "", "the last line has no end"
    return out


def graph(text):
    out = lines(text)
    assert len(set(out)) == len(out), "a triple comes twice"
    return set(out)


def graph_digest(triples):
    return sha(b"".join(t.encode() + b"\n" for t in sorted(triples, key=str.encode)))


def name(digest):
    return "<ni:///sha-256;" + base64.urlsafe_b64encode(bytes.fromhex(digest[8:])).rstrip(b"=").decode() + ">"


def rdf_patch(triples, patch):
    """RDF Patch, version 1: rows of a code, terms and a dot; one transaction."""
    triples, headers, state = set(triples), {}, "head"
    for row in lines(patch):
        code, _, rest = row.partition(" ")
        if code == "H" and state == "head":
            key, value, dot = rest.split(" ")
            assert dot == "."
            headers[key] = value
        elif row == "TX ." and state == "head":
            state = "open"
        elif row == "TC ." and state == "open":
            state = "done"
        elif code == "D" and state == "open":
            triples.remove(rest)
        elif code == "A" and state == "open":
            assert rest not in triples, row
            triples.add(rest)
        else:
            raise ValueError(state + ": " + row)
    assert state == "done"
    return triples, headers


n = {"updates": 0, "application/json-patch+json": 0, "application/rdf-patch": 0}
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        u = json.loads(line)
        n["updates"] += 1
        before, after = graph(u["BeforeGraph"]), graph(u["AfterGraph"])
        assert sha(u["After"].encode()) == u["Hash"] and graph_digest(after) == u["Graph"], u["Loc"]
        if p := u["JSON"]:
            assert sha(u["Before"].encode()) == p["Base"] and p["Result"] == u["Hash"], u["Loc"]
            made = jsonpatch.apply_patch(json.loads(u["Before"]), json.loads(p["Patch"]))
            made = json.dumps(made, ensure_ascii=False, separators=(",", ":"), sort_keys=True)  # as RFC 8785 writes it
            assert made == u["After"], (u["Loc"], made, u["After"])
            n["application/json-patch+json"] += 1
        if p := u["RDF"]:
            assert graph_digest(before) == p["Base"] and p["Result"] == u["Graph"], u["Loc"]
            made, headers = rdf_patch(before, p["Patch"])
            assert made == after and headers == {"id": name(p["Result"]), "prev": name(p["Base"])}, (u["Loc"], headers)
            n["application/rdf-patch"] += 1
print(json.dumps(n))
