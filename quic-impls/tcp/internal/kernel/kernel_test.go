package kernel

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// pair is both ends of a connection over loopback.
func pair(t *testing.T, multipath bool) (client, server *net.TCPConn) {
	t.Helper()
	listen, dialer := net.ListenConfig{}, net.Dialer{}
	listen.SetMultipathTCP(multipath)
	dialer.SetMultipathTCP(multipath)
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := dialer.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	client, server = dialled.(*net.TCPConn), accepted.(*net.TCPConn)
	if isMultipath, err := client.MultipathTCP(); err != nil || isMultipath != multipath {
		t.Skipf("Multipath TCP: %v, %v", isMultipath, err)
	}
	return client, server
}

func one(t *testing.T, connection *net.TCPConn) Flow {
	t.Helper()
	flows, err := Flows(connection)
	if err != nil || len(flows) != 1 {
		t.Fatalf("%d flows, %v", len(flows), err)
	}
	return flows[0]
}

func TestCountersAreThoseOfTheConnection(t *testing.T) {
	for _, multipath := range []bool{false, true} {
		const size = 300_000
		client, server := pair(t, multipath)
		go server.Write(make([]byte, size))
		if _, err := io.ReadFull(client, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the last acknowledgement
		received, sent := one(t, client), one(t, server)
		// On a busy machine some is sent again: in the same flow, or by Multipath TCP as new bytes of it.
		again := sent.BytesSent - received.BytesReceived
		isWhole := received.BytesReceived == size || multipath && received.BytesReceived > size
		if !isWhole || again < 0 || (again > 0) != (sent.SegmentsSentAgain > 0) || sent.BytesReceived != 0 {
			t.Errorf("multipath %v: sent %+v, received %+v", multipath, sent, received)
		}
		// The SYN-ACK is received, and counted by no socket that sent it.
		if n := received.SegmentsReceived - sent.SegmentsSent; n < 0 || n > 1 || sent.SegmentsSent < size/65_536 {
			t.Errorf("multipath %v: sent %+v, received %+v", multipath, sent, received)
		}
		loopback := netip.MustParseAddr("127.0.0.1")
		if received.Local != loopback || received.Remote != loopback || sent.Local != loopback || sent.Remote != loopback {
			t.Errorf("multipath %v: sent %+v, received %+v", multipath, sent, received)
		}
		if sent.SmoothedRTT <= 0 || sent.SmoothedRTT > time.Second || sent.WindowBytes <= 0 || sent.FlightBytes != 0 {
			t.Errorf("multipath %v: sent %+v", multipath, sent)
		}
	}
}

func TestAControllerIsAskedForByItsName(t *testing.T) {
	client, _ := pair(t, false)
	raw, err := client.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := SetCongestionControl(raw, "reno"); err != nil {
		t.Fatal(err)
	}
	if name, err := CongestionControl(client); err != nil || name != "reno" {
		t.Errorf("it has %q, %v", name, err)
	}
	if err := SetCongestionControl(raw, "no-such-one"); err == nil {
		t.Error("a controller that there is not was set")
	}
}
