package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rsbridge/rsbridge/destination/fetch"
	"github.com/rsbridge/rsbridge/internal/clip"
	"github.com/rsbridge/rsbridge/resourcesync"
)

// InventoryRel is the relation of the link from a Capability List to the inventory.
const InventoryRel = resourcesync.NamespaceBridge + "#inventory"

// ErrInventory marks an unusable inventory; the lists are compared.
var ErrInventory = errors.New("the inventory cannot be used")

// InventoryDoc is a node as the source gives it.
type InventoryDoc struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"` // Time is the time of the change of this sequence.
	Path     string    `json:"path"`
	Entities int64     `json:"entities"`
	Digest   string    `json:"digest"`
	Root     string    `json:"root"`
	Children []struct {
		Path     string `json:"path"`
		Entities int64  `json:"entities"`
		Digest   string `json:"digest"`
		Address  string `json:"address"`
	} `json:"children"`
	Leaf []struct {
		Key    string `json:"key"`
		Graph  string `json:"graph"`
		Entity string `json:"entity"`
	} `json:"leaf"`
}

// InventoryNode fetches a node. An unusable one is ErrInventory.
func (src *Documents) InventoryNode(ctx context.Context, address string) (*InventoryDoc, error) {
	a, err := src.fetch.Get(ctx, fetch.Request{URL: address, Accept: "application/json", Gzip: true, MaxBytes: src.lim.Page})
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, fetch.ErrSourceGone) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrInventory, err)
	}
	doc := &InventoryDoc{}
	if err := json.Unmarshal(a.Body, doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInventory, clip.Middle(address), err)
	}
	return doc, nil
}

// InventoryNode reads a node below the root of the inventory.
func (src *Source) InventoryNode(ctx context.Context, address string) (*InventoryDoc, error) {
	return src.Docs.InventoryNode(ctx, address)
}

// InventoryRoot is the source's present inventory, nil if none can be used.
func (src *Source) InventoryRoot(ctx context.Context, o *Offer) (*InventoryDoc, error) {
	if o.Inventory == "" || !src.keeper.Position().at.Until.IsZero() {
		return nil, nil
	}
	root, err := src.Docs.InventoryNode(ctx, o.Inventory)
	if errors.Is(err, ErrInventory) {
		src.Docs.log.Info("the source's inventory is passed over", "why", err)
		return nil, nil
	}
	return root, err
}

// Beyond tells whether an inventory has unapplied changes.
func (n *InventoryDoc) Beyond(at *Cursor) bool {
	c := &at.at
	return n != nil && c.Sequence != nil && n.Sequence > *c.Sequence
}
