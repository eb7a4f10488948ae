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
	return C.struct_capture_address{ipv4: C.uint32_t(binary.BigEndian.Uint32(address.IP.To4())), port: C.uint16_t(address.Port)}
}
