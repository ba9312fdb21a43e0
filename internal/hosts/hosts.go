// Package hosts judges addresses of servers and of listeners.
package hosts

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Named tells whether an address to listen at is of one host, and not of all names of
// this machine.
func Named(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && IsHost(host)
}

// IsHost tells whether a text is the name or the address of a host. The last part of a name
// has a letter: else it is an address, written shorter.
func IsHost(text string) bool {
	if ip, err := netip.ParseAddr(text); err == nil {
		return !ip.WithZone("").Unmap().IsUnspecified()
	}
	last := strings.TrimSuffix(text, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	return hostName.MatchString(text) && strings.Trim(last, "0123456789") != ""
}

var hostName = regexp.MustCompile(`^[\pL\pN_]([\pL\pN._-]*[\pL\pN_.])?$`)

// Listens tells whether one can listen at an address: a host, or none, and a port.
func Listens(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	_, ip := netip.ParseAddr(host)
	return err == nil && port != "" && IsPort(port) && (host == "" || ip == nil || IsHost(host))
}

// IsPort tells whether a port is valid; "" is the port of the scheme.
func IsPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil
}

// Loopback tells whether an address to listen at is of this machine alone.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// IsServer tells whether the addresses of a product can be made from an address.
func IsServer(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.RawQuery == "" && u.Fragment == ""
}
