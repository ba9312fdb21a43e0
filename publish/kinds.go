package publish

import (
	"context"
	"strings"

	"github.com/rsbridge/rsbridge/resourcesync"
)

// documentKind is a kind of document of a set. A new kind is a file with its document, and a row of
// documentKinds: its address and its place in the Capability List follow from the row.
type documentKind struct {
	// name is the address below /SET/. Parts of NAME.xml have the addresses NAME-PART.xml.
	name string
	// capability is its entry in the Capability List; "" for a document with a link there.
	capability resourcesync.Capability
	link       func(*place) resourcesync.Link
	// listed tells whether there is one now. snap is nil before the first publication.
	listed func(s *set, snap *snapshot) bool
	// document answers for the address, or for a part. An unknown part is errNoDocument.
	document func(ctx context.Context, snap *snapshot, part string) (*document, error)
}

// documentKinds are all of them, in the order of the Capability List.
var documentKinds = []documentKind{
	{name: "inventory.json", link: (*place).inventoryLink,
		listed:   func(_ *set, snap *snapshot) bool { return snap != nil && snap.gen.Inventory != "" },
		document: func(_ context.Context, snap *snapshot, _ string) (*document, error) { return snap.inventoryNow() }},
	{name: "resourcelist.xml", capability: resourcesync.ResourceList,
		listed: func(s *set, snap *snapshot) bool {
			return snap != nil && (!s.cfg.ScheduledList || s.scheduled.Load() != nil)
		},
		document: func(ctx context.Context, snap *snapshot, part string) (*document, error) {
			switch {
			case snap.set.cfg.ScheduledList && part != "":
				return snap.set.scheduledDoc(ctx, "resourcelist-"+part+".xml")
			case snap.set.cfg.ScheduledList:
				return snap.set.scheduledDoc(ctx, "resourcelist.xml")
			case part != "":
				return snap.partDoc(ctx, part)
			}
			return snap.resourceList(ctx)
		}},
	{name: "resourcedump.xml", capability: resourcesync.ResourceDump,
		listed:   func(s *set, _ *snapshot) bool { return s.dump.Load() != nil },
		document: numbered(func(s *set, page int) (*document, error) { return s.resourceDumpDoc(s.dump.Load(), page) })},
	{name: "changelist.xml", capability: resourcesync.ChangeList,
		listed: func(_ *set, snap *snapshot) bool { return snap != nil },
		document: func(ctx context.Context, snap *snapshot, part string) (*document, error) {
			digits, from := strings.CutPrefix(part, "from-")
			switch {
			case part == "":
				return snap.changeList(ctx)
			case part == "open":
				return snap.recentChanges(ctx)
			case from:
				return snap.changesFrom(ctx, digits)
			}
			return snap.numberedList(ctx, part)
		}},
	{name: "changedump.xml", capability: resourcesync.ChangeDump,
		listed:   func(s *set, _ *snapshot) bool { return len(*s.changeDumps.Load()) > 0 },
		document: numbered((*set).changeDumpDoc)},
}

// numbered is a document with numbered parts. Page 0 is the document itself.
func numbered(page func(*set, int) (*document, error)) func(context.Context, *snapshot, string) (*document, error) {
	return func(_ context.Context, snap *snapshot, part string) (*document, error) {
		n, ok := 0, true
		if part != "" {
			n, ok = pageNumber(part)
		}
		if !ok {
			return nil, errNoDocument
		}
		return page(snap.set, n)
	}
}

// document is the one at an address below /SET/.
func (snap *snapshot) document(ctx context.Context, path string) (*document, error) {
	for _, k := range documentKinds {
		if k.capability != "" && !snap.set.offers(k.capability) {
			continue
		}
		if path == k.name {
			return k.document(ctx, snap, "")
		}
		if base, xml := strings.CutSuffix(k.name, ".xml"); xml {
			name, xml := strings.CutSuffix(path, ".xml")
			if part, ok := strings.CutPrefix(name, base+"-"); xml && ok && part != "" {
				return k.document(ctx, snap, part)
			}
		}
	}
	return nil, errNoDocument
}
