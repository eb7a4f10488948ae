package endpoint

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the system's CLOCK_MONOTONIC, which all processes of a machine share.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(now.Nano())
}
