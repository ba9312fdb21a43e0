package teststores

import (
	"net"
	"testing"
)

// No port is given twice, and none that somebody has.
func TestFreePort(t *testing.T) {
	given := map[string]bool{}
	for range 200 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if given[port] {
			t.Fatalf("%s was given twice", port)
		}
		given[port] = true
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}
