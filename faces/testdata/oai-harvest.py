"""Harvests a repository with sickle and prints one JSON object a line: each record
as it came. Arguments: the base URL, the metadata prefix, from ("" for all)."""
import json
import sys

from sickle import Sickle
from sickle.oaiexceptions import NoRecordsMatch

base, prefix, since = sys.argv[1:4]
repository = Sickle(base)
args = {"metadataPrefix": prefix}
if since:
    args["from"] = since
print(json.dumps({"date": repository.harvest(verb="Identify").xml.find("{*}responseDate").text}))
try:
    for r in repository.ListRecords(**args):
        print(json.dumps({"identifier": r.header.identifier, "datestamp": r.header.datestamp, "deleted": r.deleted, "sets": r.header.setSpecs, "raw": r.raw}))
except NoRecordsMatch:
    pass
