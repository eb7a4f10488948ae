package lane

/*
#include <stdlib.h>
#include "capture.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"net"
	"syscall"
	"time"
	"unsafe"
)

// Capture is a pcapng file of what one host sends and receives.
type Capture struct {
	path string
	c    *C.struct_capture
}

// OpenCapture makes a file, whose packets at time 0 are of an epoch.
func OpenCapture(path string, epoch time.Time) (*Capture, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	c, err := C.capture_open(name, C.uint64_t(epoch.UnixNano()))
	if c == nil {
		return nil, fmt.Errorf("capture: %s: %w", path, err)
	}
	return &Capture{path, c}, nil
}

// Packet adds a datagram.
func (c *Capture) Packet(at time.Duration, from, to *net.UDPAddr, datagram []byte) {
	C.capture_packet(c.c, C.uint64_t(at), captured(from), captured(to),
		(*C.uint8_t)(unsafe.SliceData(datagram)), C.uint32_t(len(datagram)))
}

// Close completes the file. Its error is the first that there was.
func (c *Capture) Close() error {
	if errno := C.capture_close(c.c); errno != 0 {
		return fmt.Errorf("capture: %s: %w", c.path, syscall.Errno(errno))
	}
	return nil
}

func captured(address *net.UDPAddr) C.struct_capture_address {
	c := C.struct_capture_address{port: C.uint16_t(address.Port)}
	if ipv4 := address.IP.To4(); ipv4 != nil {
		c.ipv4 = C.uint32_t(binary.BigEndian.Uint32(ipv4))
		return c
	}
	c.is_ipv6 = true
	for i, b := range address.IP.To16() {
		c.ipv6[i] = C.uint8_t(b)
	}
	return c
}
