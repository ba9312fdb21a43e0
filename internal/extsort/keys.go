package extsort

import "encoding/binary"

// Keys is a list of hashes on disk, in order. In memory it tells of most other hashes that they are not
// in it.
type Keys struct {
	list  *Sorter
	known []uint64 // a bit for each beginning of a hash
}

// keyBits are the bits of a hash's beginning: 2 MiB for all of them.
const keyBits = 24

// NewKeys makes an empty list. The caller closes it.
func NewKeys(dir string, memory int64) (*Keys, error) {
	list, err := New(dir, memory)
	return &Keys{list: list}, err
}

// Close removes its files.
func (k *Keys) Close() error { return k.list.Close() }

// Len counts the additions.
func (k *Keys) Len() int64 { return k.list.Len() }

// Sorted gives the list, which takes no more hashes then.
func (k *Keys) Sorted() *Sorter { return k.list }

func bitOf(hash []byte) (word, mask uint64) {
	n := uint64(binary.BigEndian.Uint32(hash)) >> (32 - keyBits)
	return n / 64, 1 << (n % 64)
}

// Add takes a hash of at least four bytes. One may come more than once.
func (k *Keys) Add(hash []byte) error {
	if k.known == nil {
		k.known = make([]uint64, 1<<keyBits/64)
	}
	word, mask := bitOf(hash)
	k.known[word] |= mask
	return k.list.Add(hash, nil)
}

// Maybe tells whether a hash can be in the list. Of some that are not it says so as well.
func (k *Keys) Maybe(hash []byte) bool {
	word, mask := bitOf(hash)
	return k.known != nil && k.known[word]&mask != 0
}
