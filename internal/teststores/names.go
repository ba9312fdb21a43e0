package teststores

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// Names resolves every name to one IPv4 address, without the network.
func Names(t testing.TB, to netip.Addr) *net.Resolver {
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		open.Go(func() {
			defer server.Close()
			answer(server, to)
		})
		return client, nil
	}}
}

// answer serves DNS over a stream (RFC 1035, sections 4.1 and 4.2.2) until it ends.
func answer(conn net.Conn, to netip.Addr) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		ask := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, ask); err != nil || len(ask) < 17 {
			return
		}
		end := 12 // of the name
		for end < len(ask)-5 && ask[end] != 0 {
			end += 1 + int(ask[end])
		}
		question := ask[12:min(end+5, len(ask))]
		reply := append(ask[:2:2], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
		reply = append(reply, question...)
		if binary.BigEndian.Uint16(question[len(question)-4:]) == 1 { // asked for an IPv4 address
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
			reply = append(reply, to.AsSlice()...)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}
