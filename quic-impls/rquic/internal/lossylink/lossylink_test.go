package lossylink

import (
	"errors"
	"math"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestADatagramTakesItsSerializationAndTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Settings{Mbps: 1, Delay: 100 * time.Millisecond, Queue: 2000, Drops: Nothing}
		a, b := New(one, one)
		start := time.Now()
		for range 3 { // 1000 bytes with their headers take 8 ms; the third finds no room
			if _, err := a.WriteTo(make([]byte, 1000-28), nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, right := range []time.Duration{108 * time.Millisecond, 116 * time.Millisecond} {
			n, from, err := b.ReadFrom(make([]byte, 1500))
			if took := time.Since(start); n != 972 || from.String() != a.LocalAddr().String() || err != nil || took != right {
				t.Errorf("%d bytes from %v after %v, %v; right is %v", n, from, took, err, right)
			}
		}
		if err := b.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.ReadFrom(make([]byte, 1500)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a third datagram: %v", err)
		}
	})
}

func TestCloseEndsReading(t *testing.T) {
	a, _ := New(Settings{}, Settings{})
	go a.Close()
	if _, _, err := a.ReadFrom(nil); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestLossRatesAreThoseOfTheModels(t *testing.T) {
	const packets = 1_000_000
	p, r, k, h := 0.02, 0.3, 0.99, 0.2
	stationary := (r*(1-k) + p*(1-h)) / (p + r) // Networking 2019, §IV
	for name, model := range map[string]struct {
		drops Drops
		rate  float64
	}{
		"uniform":                   {Uniform(1, 0.05), 0.05},
		"never":                     {Uniform(0, 0), 0},
		"always":                    {Uniform(0, 1), 1},
		"Gilbert-Elliott":           {GilbertElliott(2, p, r, k, h), stationary},
		"Gilbert-Elliott, all good": {GilbertElliott(2, 0, 1, 1, 0), 0},
	} {
		lost := 0
		for n := range uint64(packets) {
			if model.drops(n, nil) {
				lost++
			}
		}
		if rate := float64(lost) / packets; math.Abs(rate-model.rate) > 0.003*math.Ceil(model.rate*(1-model.rate)) {
			t.Errorf("%s: rate %v, right is %v", name, rate, model.rate)
		}
	}
}
