package host

import (
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1 // CLOCK_MONOTONIC

// Monotonic is the system's CLOCK_MONOTONIC, which all processes of a machine share.
func Monotonic() time.Duration {
	var now syscall.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	if failed != 0 {
		panic(failed) // every Linux has this clock
	}
	return time.Duration(now.Nano())
}
