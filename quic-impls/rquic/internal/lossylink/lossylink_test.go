package lossylink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

func address(host byte) *net.UDPAddr {
	return &net.UDPAddr{IP: net.IPv4(10, 0, host, 2).To4(), Port: 4433}
}

// linked connects a client and its server over a link that carries datagrams until the test ends.
func linked(t *testing.T, up, down Settings, perDatagram time.Duration) (client, server *End) {
	t.Helper()
	link, err := New(up, down, lane.New(), lane.New())
	if err != nil {
		t.Fatal(err)
	}
	client, server = link.Connect(address(1), address(2), perDatagram)
	go link.Run(t.Context())
	return client, server
}

func send(t *testing.T, from *End, datagram []byte) {
	t.Helper()
	if _, err := from.WriteTo(datagram, nil); err != nil {
		t.Fatal(err)
	}
}

// arrives reads a datagram, of so many bytes, at a time.
func arrives(t *testing.T, at *End, length int, start time.Time, right time.Duration) {
	t.Helper()
	n, from, err := at.ReadFrom(make([]byte, 1500))
	if took := time.Since(start); n != length || from != at.peer.LocalAddr() || err != nil || took != right {
		t.Errorf("%d bytes from %v after %v, %v; right is %d bytes after %v", n, from, took, err, length, right)
	}
}

func nothingArrives(t *testing.T, at *End) {
	t.Helper()
	if err := at.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := at.ReadFrom(make([]byte, 1500)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a datagram too many: %v", err)
	}
}

func TestADatagramTakesItsSerializationAndTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Rate(1, 100*time.Millisecond, 2000, Nothing)
		client, server := linked(t, one, one, 0)
		start := time.Now()
		for range 3 { // with their headers 1000 bytes, 8 ms; the third finds no room
			send(t, client, make([]byte, 1000-lane.Overhead))
		}
		arrives(t, server, 1000-lane.Overhead, start, 108*time.Millisecond)
		arrives(t, server, 1000-lane.Overhead, start, 116*time.Millisecond)
		nothingArrives(t, server)
	})
}

// As tests/topologies/law_of_jitter.py says, for a mean of 1 ms and the seed 7.
func TestNoiseIsThatOfTheLawAndLetsDatagramsOvertakeWhereTheyMay(t *testing.T) {
	laws := map[string][3]time.Duration{
		"uniform": {779_659, 33_576, 1_801_521},
		"normal":  {431_826, 979_911, 1_593_858},
		"pareto":  {756_844, 5_821_326, 72_790},
	}
	for law, noise := range laws {
		for _, reorder := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				one := Rate(8, time.Millisecond, 2000, Nothing)
				one.Text += fmt.Sprintf("jitter %s 1000000 7\nreorder %v\n", law, reorder)
				client, server := linked(t, one, one, 0)
				start := time.Now()
				type exit struct {
					at     time.Duration
					length int
				}
				var due []exit
				for n := range 3 { // with their headers 100 bytes and more, 0.1 ms
					send(t, client, make([]byte, 100+n-lane.Overhead))
					at := time.Duration(100*(n+1)+n*(n+1)/2)*time.Microsecond + time.Millisecond + noise[n]
					if n > 0 && !reorder {
						at = max(at, due[n-1].at)
					}
					due = append(due, exit{at, 100 + n - lane.Overhead})
				}
				slices.SortStableFunc(due, func(a, b exit) int { return int(a.at - b.at) })
				for _, next := range due {
					arrives(t, server, next.length, start, next.at)
				}
			})
		}
	}
}

func TestCloseEndsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Rate(1, 0, 2000, Nothing)
		client, _ := linked(t, one, one, 0)
		go client.Close()
		if _, _, err := client.ReadFrom(nil); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// At one instant, the endpoints' timers come first, then the link.
func TestAtOneInstantTheLinkComesAfterTheEndpointsTimers(t *testing.T) {
	for range 100 { // Go shuffles timers of one instant
		synctest.Test(t, func(t *testing.T) {
			one := Rate(8, 20*time.Millisecond, 2000, Nothing) // a byte takes a microsecond
			client, server := linked(t, one, one, 0)
			var order []string
			send(t, client, make([]byte, 1000-lane.Overhead))
			time.AfterFunc(21*time.Millisecond, func() { order = append(order, "timer") })
			server.ReadFrom(make([]byte, 1500))
			if order = append(order, "datagram"); order[0] != "timer" {
				t.Fatal(order)
			}
			server.SetReadDeadline(time.Now().Add(25 * time.Millisecond))
			time.AfterFunc(25*time.Millisecond, func() { order = append(order, "timer") })
			server.ReadFrom(nil)
			if order = append(order, "deadline"); order[2] != "timer" {
				t.Fatal(order)
			}
		})
	}
}

func TestTwoPairsShareTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Rate(1, 0, 2500, Nothing)
		link, err := New(one, one, lane.New(), lane.New())
		if err != nil {
			t.Fatal(err)
		}
		client, server := link.Connect(address(1), address(2), 0)
		other, otherServer := link.Connect(address(3), address(4), 0)
		go link.Run(t.Context())
		start := time.Now()
		send(t, other, make([]byte, 500-lane.Overhead)) // written first, but the ends have their order within an instant
		send(t, client, make([]byte, 1000-lane.Overhead))
		arrives(t, server, 1000-lane.Overhead, start, 8*time.Millisecond)
		arrives(t, otherServer, 500-lane.Overhead, start, 12*time.Millisecond)
		if server.ReceivedBytes != 1000 {
			t.Errorf("the server received %d", server.ReceivedBytes)
		}
	})
}

func TestAProcessorDoesOneThingAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Rate(8, 0, 1<<20, Nothing) // a byte takes a microsecond
		client, server := linked(t, one, one, 2*time.Millisecond)
		start := time.Now()
		for range 3 {
			send(t, client, make([]byte, 1000-lane.Overhead))
		}
		for n := range 3 { // 2 ms to send it, after those before it, 1 ms on the link, 2 ms to receive it
			arrives(t, server, 1000-lane.Overhead, start, time.Duration(5+2*n)*time.Millisecond)
		}
	})
}

func TestWhatAProcessorHasInHandIsInTheLinkAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Rate(1, 100*time.Millisecond, 2000, Nothing)
		up := lane.New()
		link, err := New(one, one, up, lane.New())
		if err != nil {
			t.Fatal(err)
		}
		client, _ := link.Connect(address(1), address(2), time.Second)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { link.Run(ctx); close(ended) }()
		send(t, client, make([]byte, 100))
		send(t, client, make([]byte, 100))
		time.Sleep(time.Millisecond) // both are in the processor's hands, for one second and for two
		stop()
		<-ended
		if report := up.Report(); report.FramesIn != 2 {
			t.Errorf("%d datagrams came to the link, and 2 were sent", report.FramesIn)
		}
	})
}

func TestALostDatagramHasUsedTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := Rate(1, 0, 1<<20, Those(func(n uint64, datagram []byte) bool { return n == 0 && datagram[0] == 1 }))
		client, server := linked(t, first, first, 0)
		start := time.Now()
		send(t, client, append([]byte{1}, make([]byte, 999-lane.Overhead)...))
		send(t, client, append([]byte{2}, make([]byte, 999-lane.Overhead)...))
		arrives(t, server, 1000-lane.Overhead, start, 16*time.Millisecond)
		nothingArrives(t, server)
	})
}
