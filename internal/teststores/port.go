package teststores

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// Ports that FreePort gives: the system itself gives none of them to anybody who
// asks for any (Linux begins at 32768, others at 49152).
const (
	firstPort = 20_000
	allPorts  = 12_000
	ownPorts  = 100 // of a process, before it comes to those of another
)

var portsGiven atomic.Int64

// FreePort is a TCP port without a listener at 127.0.0.1, for a process that
// is started later, and again on the same: no other listener, no connection and no
// other call in this process takes it meanwhile.
func FreePort() (string, error) {
	for range allPorts {
		n := int64(os.Getpid())*ownPorts + portsGiven.Add(1)
		port := strconv.FormatInt(firstPort+n%allPorts, 10)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", errors.New("no port from 20000 to 31999 is free")
}
