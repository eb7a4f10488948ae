// Package header is the wire format that rQUIC inserts into the packets of a
// QUIC connection (Zverev et al., IEEE Access 2021, §V-A): after the
// destination connection ID of every short-header packet come 1 byte (an
// unprotected packet) or 4 bytes (a protected or a coded one). Long-header
// packets are never touched.
//
//	UP   first byte | connection ID | 00                      | rest
//	PP   first byte | connection ID | 01 id generation overlap | rest
//	CP   first byte | connection ID | kind id generation size  | coded payload
//
// The kind of a coded packet says which code made it. The package refuses packets that are too short.
package header

import "fmt"

// ConnectionIDLength is the length in bytes of every connection ID: a short
// header doesn't say how long its own is, so both sides agree on it.
const ConnectionIDLength = 4

// ConnectionID is a destination connection ID.
type ConnectionID [ConnectionIDLength]byte

// Prefix is the length of the bytes before the rQUIC header: the first byte and the connection ID.
const Prefix = 1 + ConnectionIDLength

// MaxGenerationSize is the paper's limit of source packets in a generation (§V-A1).
const MaxGenerationSize = 63

// Kind is the kind of a packet; its value is the first byte of the rQUIC header.
type Kind uint8

const (
	Unprotected Kind = 0
	Source      Kind = 1
	CodedXOR    Kind = 2
	CodedRLC    Kind = 3
)

// Header is an rQUIC header. An unprotected packet has a kind only.
type Header struct {
	Kind       Kind
	ID         uint8 // of the packet; a coded packet has that of the last packet that it protects
	Generation uint8
	// Size is the number of source packets in a coded packet's generation. Source packets have the overlap in
	// its place: the number of generations that they belong to, of which Generation is the newest.
	Size uint8
}

// IsLong reports whether a datagram begins with a long-header packet, which rQUIC leaves alone.
func IsLong(datagram []byte) bool { return len(datagram) > 0 && datagram[0]&0x80 != 0 }

// IsShort reports whether QUIC takes a datagram for a packet with a short header (RFC 9000, §17.3.1).
func IsShort(datagram []byte) bool { return len(datagram) > 0 && datagram[0]&0xc0 == 0x40 }

// Append appends the header's bytes to b.
func (h Header) Append(b []byte) []byte {
	if h.Kind == Unprotected {
		return append(b, byte(Unprotected))
	}
	return append(b, byte(h.Kind), h.ID, h.Generation, h.Size)
}

// Parse splits a short-header datagram: prefix is its first byte and connection ID, rest is all that follows the rQUIC
// header. Both are views into datagram.
func Parse(datagram []byte) (prefix []byte, h Header, rest []byte, err error) {
	if len(datagram) <= Prefix {
		return nil, Header{}, nil, fmt.Errorf("short-header datagram of %d bytes has no rQUIC header", len(datagram))
	}
	prefix, rest = datagram[:Prefix], datagram[Prefix:]
	kind := Kind(rest[0])
	if kind == Unprotected {
		return prefix, Header{Kind: kind}, rest[1:], nil
	}
	if len(rest) < 4 {
		return nil, Header{}, nil, fmt.Errorf("datagram of %d bytes ends inside its rQUIC header", len(datagram))
	}
	return prefix, Header{Kind: kind, ID: rest[1], Generation: rest[2], Size: rest[3]}, rest[4:], nil
}
