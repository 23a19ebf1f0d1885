package rail

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"strings"
	"testing"
)

var discard = log.New(io.Discard, "", 0)

func TestOnlyPublicAddressesAreDialledByName(t *testing.T) {
	named := mustRail(t, card("https://api.example.com")).dial
	for address, want := range map[string]string{
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "::ffff:7f00:1": "loopback",
		"10.0.0.1": "private", "10.255.255.255": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "::ffff:10.0.0.1": "private",
		"fc00::1": "private", "fd12:3456::1": "private", "fec0::1": "private",
		"169.254.169.254": "link-local", "::ffff:169.254.169.254": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"100.64.0.1": "shared", "100.127.255.255": "shared",
		"224.0.0.1": "multicast", "239.255.255.255": "multicast", "ff02::1": "multicast",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"255.255.255.255": "reserved", "240.0.0.1": "reserved", "198.18.0.1": "reserved", "192.0.0.1": "reserved", "100::1": "reserved",
		"64:ff9b::127.0.0.1": "loopback", "64:ff9b::a9fe:a9fe": "link-local", "64:ff9b::10.1.2.3": "private", "64:ff9b:1::8.8.8.8": "translation",
		"::127.0.0.1": "loopback", "2002:7f00:1::": "loopback", "2002:a00:1::": "private", "2001::1": "tunnel",

		"8.8.8.8": "", "172.32.0.1": "", "172.15.0.1": "", "100.128.0.1": "", "100.63.0.1": "", "11.0.0.1": "", "169.253.0.1": "", "192.169.0.1": "",
		"2606:4700::1111": "", "::ffff:8.8.8.8": "", "64:ff9b::8.8.8.8": "", "2002:808:808::": "",
	} {
		err := named.admit(netip.MustParseAddr(address))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !errors.Is(err, errRefusedAddress)) {
			t.Errorf("%s: want %q, got %v", address, want, err)
		}
	}
	if named.admit(netip.Addr{}) == nil {
		t.Error("no address at all is dialled")
	}
}

func TestAPrivateAddressIsMeantOnlyWhereItIsWritten(t *testing.T) {
	for _, c := range []struct {
		base, address string
		allow, want   bool
	}{
		{"http://127.0.0.1:8080", "127.0.0.1", false, true},
		{"http://127.0.0.1:8080", "127.0.0.2", false, false},
		{"http://127.0.0.1:8080", "10.0.0.1", false, false},
		{"http://[::1]:8080", "::1", false, true},
		{"http://[::ffff:127.0.0.1]", "127.0.0.1", false, true},
		{"http://10.1.2.3", "10.1.2.3", false, true},
		{"http://localhost:8080", "127.0.0.1", false, true},
		{"http://LOCALHOST:8080", "::1", false, true},
		{"http://localhost:8080", "10.0.0.1", false, false},
		{"http://localhost.example.com", "127.0.0.1", false, false},
		{"http://127.0.0.1.example.com", "127.0.0.1", false, false},
		{"http://2130706433", "127.0.0.1", false, false},
		{"http://127.1", "127.0.0.1", false, false},
		{"http://0x7f.0.0.1", "127.0.0.1", false, false},
		{"http://0177.0.0.1", "127.0.0.1", false, false},
		{"http://bank.internal", "10.0.0.1", false, false},
		{"http://bank.internal", "10.0.0.1", true, true},
		{"http://8.8.8.8", "8.8.8.8", false, true},
	} {
		r := mustRail(t, with(card(c.base), func(k *Config) { k.AllowPrivate = c.allow }))
		if err := r.dial.admit(netip.MustParseAddr(c.address)); (err == nil) != c.want {
			t.Errorf("%s at %s: %v", c.base, c.address, err)
		}
	}
}

func TestOnlyTheConfiguredPortIsDialled(t *testing.T) {
	for base, port := range map[string]string{"https://api.example.com": "443", "http://api.example.com": "80", "https://api.example.com:8443": "8443"} {
		d := mustRail(t, card(base)).dial
		if err := d.control("tcp", "8.8.8.8:"+port, nil); err != nil {
			t.Errorf("%s: %v", base, err)
		}
		for _, address := range []string{"8.8.8.8:22", "8.8.8.8:6379", "nonsense", "8.8.8.8"} {
			if d.control("tcp", address, nil) == nil {
				t.Errorf("%s dials %s", base, address)
			}
		}
	}
}

// A name that resolves to this machine must not reach it, whatever the
// environment says about proxies.
func TestANameThatPointsInsideReachesNothing(t *testing.T) {
	inside := newProvider(t, always(answer("201 Created", paid)))
	_, port, _ := net.SplitHostPort(inside.addr)
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, inside.url)
	}
	resolver := nameServer(t, netip.MustParseAddr("127.0.0.1"))

	r := mustRail(t, card("http://api.example.test:"+port))
	r.resolver = resolver
	_, err := r.Connect(t.Context())
	if err == nil || !errors.Is(err, errRefusedAddress) || !strings.Contains(err.Error(), "its address is not allowed") {
		t.Errorf("connect: %v", err)
	}
	if look := r.Lookup(t.Context(), payment()); look.Sentence != "The provider could not be asked: its address is not allowed." {
		t.Errorf("look-up: %+v", look)
	}
	if conns, _ := inside.seen(); conns != 0 {
		t.Errorf("%d connections reached the inside", conns)
	}

	meant := mustRail(t, with(card("http://api.example.test:"+port), func(c *Config) { c.AllowPrivate = true }))
	meant.resolver = resolver
	if x := send(t, meant); x.Status != 201 {
		t.Errorf("allow_private does not allow: %+v", x)
	}
}

// nameServer answers every question with one address, over a real socket.
func nameServer(t *testing.T, a netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			pc.WriteTo(dnsReply(buf[:n], a), from)
		}
	}()
	t.Cleanup(func() { pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// dnsReply repeats the question and answers it, if it is one for an A record.
func dnsReply(query []byte, a netip.Addr) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, type and class
	isA := binary.BigEndian.Uint16(query[end-4:]) == 1
	reply := append([]byte{}, query[:end]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180)     // an answer, recursion available
	copy(reply[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0}) // one question, nothing else
	if isA {
		reply[7] = 1
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4) // the name of the question, A, IN, 1 s
		reply = append(reply, a.AsSlice()...)
	}
	return reply
}
