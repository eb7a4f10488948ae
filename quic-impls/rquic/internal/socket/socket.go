// Package socket is the UDP socket below everything else. It shows quic-go no more than a net.PacketConn, so that
// in all arms of an experiment one datagram is one system call and one packet on the wire: no segmentation
// offload, no batches, no ECN. It counts every byte of UDP payload that passes.
package socket

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// Socket is a socket that counts.
type Socket struct {
	net.PacketConn
	BytesSent, BytesReceived atomic.Int64

	last atomic.Pointer[net.UDPAddr] // sender of the last datagram; made once for all in a row
}

// Listen opens a UDP socket at an address; port 0 lets the system choose.
func Listen(address netip.AddrPort) (*Socket, error) {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %v: %w", address, err)
	}
	return &Socket{PacketConn: udp}, nil
}

func (s *Socket) ReadFrom(b []byte) (int, net.Addr, error) {
	udp, ok := s.PacketConn.(*net.UDPConn)
	if !ok {
		n, from, err := s.PacketConn.ReadFrom(b)
		s.BytesReceived.Add(int64(n))
		return n, from, err
	}
	n, from, err := udp.ReadFromUDPAddrPort(b)
	if err != nil {
		return n, nil, err
	}
	s.BytesReceived.Add(int64(n))
	last := s.last.Load()
	if last == nil || last.AddrPort() != from {
		last = net.UDPAddrFromAddrPort(from)
		s.last.Store(last)
	}
	return n, last, nil
}

func (s *Socket) WriteTo(b []byte, to net.Addr) (int, error) {
	n, err := s.PacketConn.WriteTo(b, to)
	s.BytesSent.Add(int64(n))
	return n, err
}

// SetReadBuffer asks for a receive buffer of a size in bytes, beyond the system's limit where that is
// allowed. Only a UDP socket has such a buffer.
func (s *Socket) SetReadBuffer(size int) error {
	if udp, ok := s.PacketConn.(*net.UDPConn); ok {
		return setBuffer(udp, syscall.SO_RCVBUFFORCE, size, udp.SetReadBuffer)
	}
	return nil
}

// SetWriteBuffer is SetReadBuffer for sending.
func (s *Socket) SetWriteBuffer(size int) error {
	if udp, ok := s.PacketConn.(*net.UDPConn); ok {
		return setBuffer(udp, syscall.SO_SNDBUFFORCE, size, udp.SetWriteBuffer)
	}
	return nil
}

func setBuffer(udp *net.UDPConn, force, size int, ask func(int) error) error {
	raw, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	var forced error
	err = raw.Control(func(fd uintptr) { forced = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, force, size) })
	if err != nil {
		return err
	}
	if errors.Is(forced, syscall.EPERM) {
		return ask(size)
	}
	return forced
}
