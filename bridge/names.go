package bridge

import "github.com/rsbridge/rsbridge/publish/search"

// Names is the index of the names in a set, nil for an unknown set. It ends with the bridge.
func Names(b *Bridge, set string) *search.Index {
	if b.pub == nil {
		return nil
	}
	return b.pub.Names(set)
}
