// Package kernel is Linux's view of a TCP connection: its congestion control, and its counters (TCP_INFO), of a
// Multipath TCP connection those of each subflow (MPTCP_TCPINFO).
package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const (
	congestionControl = 13 // TCP_CONGESTION
	longestName       = 16 // TCP_CA_NAME_MAX

	multipath        = 284 // SOL_MPTCP
	subflowCounters  = 2   // MPTCP_TCPINFO
	subflowAddresses = 3   // MPTCP_SUBFLOW_ADDRS
	mostSubflows     = 16

	optionECN = 8 // TCPI_OPT_ECN
)

// info is struct tcp_info up to tcpi_dsack_dups, which Linux has since 4.19.
type info struct {
	_                             [5]uint8 // state, …
	Options                       uint8
	_                             [2]uint8
	_, _                          uint32 // rto, ato
	MSS                           uint32
	_                             uint32 // rcv_mss
	Unacked, Sacked, Lost, Retran uint32
	_                             [5]uint32 // fackets, last_…
	_, _                          uint32    // pmtu, rcv_ssthresh
	RTT                           uint32    // smoothed, in µs
	_, _                          uint32    // rttvar, snd_ssthresh
	Window                        uint32    // in segments
	_, _, _, _                    uint32    // advmss, reordering, rcv_rtt, rcv_space
	TotalRetrans                  uint32
	_, _, _                       uint64 // pacing_rate, max_pacing_rate, bytes_acked
	BytesReceived                 uint64
	SegmentsSent                  uint32
	SegmentsReceived              uint32
	_                             uint32 // notsent_bytes
	MinRTT                        uint32 // in µs
	_, _                          uint32 // data_segs_in, data_segs_out
	_, _                          uint64 // delivery_rate, busy_time
	WaitedForWindow               uint64 // rwnd_limited, in µs
	WaitedForBuffer               uint64 // sndbuf_limited, in µs
	_, _                          uint32 // delivered, delivered_ce
	BytesSent, _                  uint64 // bytes_sent, bytes_retrans
	Duplicates                    uint32 // dsack_dups
	_                             uint32
}

// Flow is a TCP connection, or a subflow of a Multipath TCP connection, with what the kernel has counted of it.
type Flow struct {
	Local, Remote netip.Addr
	// SegmentsSent has all but the SYN-ACK, and all that were sent again; a GSO packet counts as its segments.
	SegmentsSent, SegmentsReceived int64
	SegmentsSentAgain              int64
	// Duplicates is the number of segments that the peer had already (RFC 2883).
	Duplicates               int64
	BytesSent, BytesReceived int64 // of payload; sent: with what was sent again
	WindowBytes, FlightBytes int64
	SmoothedRTT, MinRTT      time.Duration
	// WaitedForWindow and WaitedForBuffer are for how long not the congestion window kept it from sending, but the peer's
	// receive window, or its own send buffer.
	WaitedForWindow, WaitedForBuffer time.Duration
}

// SetCongestionControl asks for a controller by its name, of a socket that is not yet connected, or listens. Where the kernel
// doesn't allow it to users, it may still come with the route: the controller that a connection has tells.
func SetCongestionControl(socket syscall.RawConn, name string) error {
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, congestionControl, name)
	})
	if err != nil {
		return err
	}
	if failed == syscall.EPERM {
		return nil
	}
	return os.NewSyscallError("setsockopt TCP_CONGESTION", failed)
}

// CongestionControl is the name of a connection's controller.
func CongestionControl(connection *net.TCPConn) (string, error) {
	var name [longestName]byte
	n, err := option(connection, syscall.IPPROTO_TCP, congestionControl, unsafe.Pointer(&name), len(name))
	if err != nil {
		return "", fmt.Errorf("TCP_CONGESTION: %w", err)
	}
	text, _, _ := bytes.Cut(name[:n], []byte{0})
	return string(text), nil
}

// HasECN reports whether both ends of a connection have agreed on ECN (RFC 3168).
func HasECN(connection *net.TCPConn) (bool, error) {
	var i info
	if _, err := option(connection, syscall.IPPROTO_TCP, syscall.TCP_INFO, unsafe.Pointer(&i), int(unsafe.Sizeof(i))); err != nil {
		return false, fmt.Errorf("TCP_INFO: %w", err)
	}
	return i.Options&optionECN != 0, nil
}

// Allowed are the controllers that users may choose, as the kernel lists them.
func Allowed() string {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if err != nil {
		return "others"
	}
	return strings.TrimSpace(string(text))
}

// Flows are the subflows of a Multipath TCP connection that are there, or the one TCP connection itself.
func Flows(connection *net.TCPConn) ([]Flow, error) {
	if isMultipath, err := connection.MultipathTCP(); err != nil {
		return nil, err
	} else if isMultipath {
		return subflows(connection)
	}
	var i info
	if _, err := option(connection, syscall.IPPROTO_TCP, syscall.TCP_INFO, unsafe.Pointer(&i), int(unsafe.Sizeof(i))); err != nil {
		return nil, fmt.Errorf("TCP_INFO: %w", err)
	}
	return []Flow{i.flow(address(connection.LocalAddr()), address(connection.RemoteAddr()))}, nil
}

// array is the kernel's answer about all subflows: struct mptcp_subflow_data, and an element for each.
type array[Element any] struct {
	size, Count, _, elementSize uint32
	Elements                    [mostSubflows]Element
}

// addresses is struct mptcp_subflow_addrs: two struct sockaddr_storage.
type addresses struct{ Local, Remote [128]byte }

func subflows(connection *net.TCPConn) ([]Flow, error) {
	counters, err := ofSubflows[info](connection, subflowCounters)
	if err != nil {
		return nil, fmt.Errorf("MPTCP_TCPINFO: %w", err)
	}
	ends, err := ofSubflows[addresses](connection, subflowAddresses)
	if err != nil {
		return nil, fmt.Errorf("MPTCP_SUBFLOW_ADDRS: %w", err)
	}
	// A subflow that has come in between stands at the end of the later answer alone.
	flows := make([]Flow, min(len(counters), len(ends)))
	for n := range flows {
		flows[n] = counters[n].flow(socketAddress(ends[n].Local), socketAddress(ends[n].Remote))
	}
	return flows, nil
}

func ofSubflows[Element any](connection *net.TCPConn, name int) ([]Element, error) {
	var a array[Element]
	a.size, a.elementSize = uint32(unsafe.Offsetof(a.Elements)), uint32(unsafe.Sizeof(a.Elements[0]))
	if _, err := option(connection, multipath, name, unsafe.Pointer(&a), int(unsafe.Sizeof(a))); err != nil {
		return nil, err
	}
	return a.Elements[:min(a.Count, mostSubflows)], nil
}

func (i info) flow(local, remote netip.Addr) Flow {
	inFlight := int64(i.Unacked) - int64(i.Sacked) - int64(i.Lost) + int64(i.Retran)
	return Flow{
		Local: local, Remote: remote,
		SegmentsSent: int64(i.SegmentsSent), SegmentsReceived: int64(i.SegmentsReceived),
		SegmentsSentAgain: int64(i.TotalRetrans), Duplicates: int64(i.Duplicates),
		BytesSent: int64(i.BytesSent), BytesReceived: int64(i.BytesReceived),
		WindowBytes: int64(i.Window) * int64(i.MSS), FlightBytes: max(0, inFlight) * int64(i.MSS),
		SmoothedRTT: microseconds(i.RTT), MinRTT: microseconds(i.MinRTT),
		WaitedForWindow: microseconds(i.WaitedForWindow), WaitedForBuffer: microseconds(i.WaitedForBuffer),
	}
}

func microseconds[Number uint32 | uint64](n Number) time.Duration {
	return time.Duration(n) * time.Microsecond
}

func address(a net.Addr) netip.Addr { return a.(*net.TCPAddr).AddrPort().Addr().Unmap() }

// socketAddress returns the address in a struct sockaddr_in or sockaddr_in6; the zero address for another one.
func socketAddress(storage [128]byte) netip.Addr {
	switch binary.NativeEndian.Uint16(storage[:]) {
	case syscall.AF_INET:
		return netip.AddrFrom4([4]byte(storage[4:8]))
	case syscall.AF_INET6:
		return netip.AddrFrom16([16]byte(storage[8:24])).Unmap()
	}
	return netip.Addr{}
}

// option is getsockopt: how many bytes the kernel has written.
func option(connection *net.TCPConn, level, name int, value unsafe.Pointer, size int) (int, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return 0, err
	}
	length, failed := uint32(size), syscall.Errno(0)
	err = raw.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall6(
			syscall.SYS_GETSOCKOPT, fd, uintptr(level), uintptr(name), uintptr(value), uintptr(unsafe.Pointer(&length)), 0)
	})
	if err == nil && failed != 0 {
		err = failed
	}
	return int(length), err
}
