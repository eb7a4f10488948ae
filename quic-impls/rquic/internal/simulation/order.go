package simulation

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// errDisorder means that no trial would be like another.
var errDisorder = errors.New("this simulator was built with Go's own runtime, in which goroutines have no fixed order; build it with make")

// requireOrder refuses a runtime without the changes of simulator/overlay.sh: with them, timers of one instant fire in the
// same order in every bubble.
func requireOrder(t *testing.T) error {
	if first := orderOfTimers(t); !slices.Equal(first, orderOfTimers(t)) {
		return errDisorder
	}
	return nil
}

func orderOfTimers(t *testing.T) (fired []int) {
	const timers = 32
	synctest.Test(t, func(*testing.T) {
		order := make(chan int, timers)
		for i := range timers {
			time.AfterFunc(time.Second, func() { order <- i })
		}
		for range timers {
			fired = append(fired, <-order)
		}
	})
	return fired
}
