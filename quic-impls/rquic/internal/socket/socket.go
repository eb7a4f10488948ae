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
	"time"
)

// Socket is a UDP socket that counts.
type Socket struct {
	udp                      *net.UDPConn
	BytesSent, BytesReceived atomic.Int64
}

// Listen opens a socket at an address; port 0 lets the system choose.
func Listen(address netip.AddrPort) (*Socket, error) {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %v: %w", address, err)
	}
	return &Socket{udp: udp}, nil
}

func (s *Socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.udp.ReadFrom(b)
	s.BytesReceived.Add(int64(n))
	return n, from, err
}

func (s *Socket) WriteTo(b []byte, to net.Addr) (int, error) {
	n, err := s.udp.WriteTo(b, to)
	s.BytesSent.Add(int64(n))
	return n, err
}

// SetReadBuffer asks for a receive buffer of a size in bytes, beyond the system's limit where that is allowed.
func (s *Socket) SetReadBuffer(size int) error {
	return s.setBuffer(syscall.SO_RCVBUFFORCE, size, s.udp.SetReadBuffer)
}

// SetWriteBuffer is SetReadBuffer for sending.
func (s *Socket) SetWriteBuffer(size int) error {
	return s.setBuffer(syscall.SO_SNDBUFFORCE, size, s.udp.SetWriteBuffer)
}

func (s *Socket) setBuffer(force, size int, ask func(int) error) error {
	raw, err := s.udp.SyscallConn()
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

func (s *Socket) Close() error                       { return s.udp.Close() }
func (s *Socket) LocalAddr() net.Addr                { return s.udp.LocalAddr() }
func (s *Socket) SetDeadline(t time.Time) error      { return s.udp.SetDeadline(t) }
func (s *Socket) SetReadDeadline(t time.Time) error  { return s.udp.SetReadDeadline(t) }
func (s *Socket) SetWriteDeadline(t time.Time) error { return s.udp.SetWriteDeadline(t) }
