package ledger

import (
	"encoding/binary"
	"time"
)

// Decoder reads the fields of a record from B. After a short read Bad is set, and every
// further field is zero.
type Decoder struct {
	B   []byte
	Bad bool
}

// Varint reads a number.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.B)
	if n <= 0 {
		d.Bad, d.B = true, nil
		return 0
	}
	d.B = d.B[n:]
	return v
}

// Bytes reads bytes, as AppendString wrote them; they are part of B.
func (d *Decoder) Bytes() []byte {
	n := d.Varint()
	if d.Bad || n < 0 || n > int64(len(d.B)) {
		d.Bad, d.B = true, nil
		return nil
	}
	s := d.B[:n]
	d.B = d.B[n:]
	return s
}

// String reads a string.
func (d *Decoder) String() string { return string(d.Bytes()) }

// Fixed fills dst.
func (d *Decoder) Fixed(dst []byte) {
	if len(d.B) < len(dst) {
		d.Bad, d.B = true, nil
		return
	}
	copy(dst, d.B)
	d.B = d.B[len(dst):]
}

// Time reads a time, in UTC.
func (d *Decoder) Time() time.Time {
	sec, nsec := d.Varint(), d.Varint()
	if d.Bad || (sec == 0 && nsec == -1) {
		return time.Time{}
	}
	return time.Unix(sec, nsec).UTC()
}

// AppendString writes the length, as a number, and the bytes.
func AppendString[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendVarint(b, int64(len(s)))
	return append(b, s...)
}

// AppendTime writes seconds since 1970 and nanoseconds; a zero time is 0 and -1.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(binary.AppendVarint(b, 0), -1)
	}
	return binary.AppendVarint(binary.AppendVarint(b, t.Unix()), int64(t.Nanosecond()))
}

// Flag reads one byte: 1 is true.
func (d *Decoder) Flag() bool {
	var b [1]byte
	d.Fixed(b[:])
	return b[0] == 1
}
