package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/contract"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/messages"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

var everyDelivery = []messages.Delivery{messages.Datagram, messages.Deadline, messages.Stream, messages.Reliable}

// frames are messages of some bytes, 30 in a second, in parts of 1000 bytes.
func frames(count int, size int64, delivery messages.Delivery, up bool) contract.Workload {
	traffic := &messages.Traffic{Up: up, Delivery: delivery, Deadline: 100 * time.Millisecond, PartBytes: 1000}
	for m := range count {
		traffic.Messages = append(traffic.Messages, messages.Message{
			Due: time.Duration(m) * time.Second / 30, Offset: int64(m) * size, Size: size,
		})
	}
	return contract.Workload{Name: "messages", Messages: traffic}
}

// part is a row of the table of messages.
type part map[string]float64

// parts are the rows that an endpoint has left.
func (o outcome) parts(t *testing.T, role string) (rows []part) {
	t.Helper()
	file, err := os.Open(filepath.Join(o.logs, role, "messages.series.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := part{}
		for i, name := range lines[0] {
			if row[name], err = strconv.ParseFloat(line[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// exchanged is an exchange of messages, with the tables of both ends.
func exchanged(workload contract.Workload, options contract.Options, up, down lossylink.Settings) transfer {
	return transfer{workload: workload, options: options, up: up, down: down, series: contract.Series{Messages: true}}
}

// senderAndReceiver are the roles.
func senderAndReceiver(up bool) (sender, receiver string) {
	if up {
		return "client", "server"
	}
	return "server", "client"
}

func TestEveryMessageArrivesInEveryArm(t *testing.T) {
	const count, size = 30, 8000
	for _, delivery := range everyDelivery {
		for _, scheme := range []string{"none", "hold", "xor", "rlc", "plain"} {
			for _, up := range []bool{false, true} {
				t.Run(fmt.Sprint(delivery, " ", scheme, " up ", up), func(t *testing.T) {
					t.Parallel()
					o := exchanged(frames(count, size, delivery, up), withScheme(fecOptions, scheme), wifi(lossylink.Nothing),
						wifi(lossylink.Nothing)).succeed(t)
					sender, receiver := senderAndReceiver(up)
					sent, arrived := o.parts(t, sender), o.parts(t, receiver)
					if len(sent) != 8*count || len(arrived) != 8*count {
						t.Fatalf("%d parts sent, %d arrived; right is %d", len(sent), len(arrived), 8*count)
					}
					for i, row := range sent {
						if row["message"] != float64(i/8) || row["part"] != float64(i%8) || row["bytes"] != 1000 || row["sent_s"] < row["due_s"] {
							t.Fatalf("row %d of what was sent: %v", i, row)
						}
					}
					metrics := map[string]map[string]float64{"client": o.client, "server": o.server}
					if on := scheme == "xor" || scheme == "rlc"; (metrics[sender]["repair_sent"] > 0) != on {
						t.Errorf("%v repair packets", metrics[sender]["repair_sent"])
					}
					for role, m := range metrics {
						if m["datagrams_dropped"] != 0 || m["datagrams_overflowed"] != 0 || m["messages_reset"] != 0 {
							t.Errorf("%s: %v", role, m)
						}
					}
				})
			}
		}
	}
}

func TestUnderLossesStreamsBringEveryByteAndDatagramsWhatIsNotLost(t *testing.T) {
	const count, size = 60, 8000
	for _, delivery := range everyDelivery {
		for _, scheme := range []string{"none", "rlc"} {
			t.Run(fmt.Sprint(delivery, " ", scheme), func(t *testing.T) {
				t.Parallel()
				losses := wifi(lossylink.Uniform(3, 0.05))
				o := exchanged(frames(count, size, delivery, false), withScheme(fecOptions, scheme), losses, losses).succeed(t)
				arrived := len(o.parts(t, "client"))
				switch delivery {
				case messages.Stream, messages.Reliable:
					if arrived != 8*count {
						t.Errorf("%d parts arrived", arrived)
					}
				case messages.Deadline:
					if arrived > 8*count || arrived+8*int(o.server["messages_reset"]) < 8*count {
						t.Errorf("%d parts arrived, and %v messages were reset", arrived, o.server["messages_reset"])
					}
				case messages.Datagram:
					if scheme == "none" && !(8*count*85/100 < arrived && arrived < 8*count) {
						t.Errorf("%d parts arrived with 5 %% of packets lost", arrived)
					}
					if scheme == "rlc" && o.client["packets_recovered"] == 0 {
						t.Error("no packet was recovered")
					}
				}
			})
		}
	}
}

// A receiver of datagrams cannot know that the missing ones were lost.
func TestAReceiverOfDatagramsWaitsForASecondOfSilenceAfterTheEnd(t *testing.T) {
	for lost, right := range map[bool]float64{false: 0, true: drain.Seconds()} {
		drops := lossylink.Nothing
		if lost {
			drops = lossylink.Those(func(n uint64, _ []byte) bool { return n == 20 })
		}
		o := exchanged(frames(20, 1000, messages.Datagram, false), withScheme(fecOptions, "none"), wifi(lossylink.Nothing), wifi(drops)).succeed(t)
		arrived := o.parts(t, "client")
		if len(arrived) < 19 || lost != (len(arrived) == 19) {
			t.Fatalf("%d parts arrived", len(arrived))
		}
		waited := o.client["dct_s"] - arrived[len(arrived)-1]["t_s"]
		if math.Abs(waited-right) > 0.01 {
			t.Errorf("a part lost %v: it waited for %v s after the last one, right is %v", lost, waited, right)
		}
	}
}

// On a slow link, the end overtakes datagrams: it has room in their packets.
func TestNewsAfterTheEndMakeAReceiverOfDatagramsWaitOn(t *testing.T) {
	slow := lossylink.Rate(0.02, wifiDelay, 100_000, lossylink.Nothing) // 0.43 s for each packet
	o := exchanged(frames(1, 9000, messages.Datagram, false), withScheme(fecOptions, "none"), slow, slow).succeed(t)
	if arrived := o.parts(t, "client"); len(arrived) != 9 || arrived[8]["arrived_s"]-arrived[0]["arrived_s"] < 2 {
		t.Errorf("%v", arrived)
	}
}

// The first window is 40 kB, and the first acknowledgement comes when 144 kB are due: quic-go takes no more datagrams than its
// window and its queue have room for.
func TestASenderThatIsBlockedIsLateAndSkipsNothing(t *testing.T) {
	const count = 30
	far := link(20, 300*time.Millisecond, lossylink.Nothing)
	o := exchanged(frames(count, 8000, messages.Datagram, true), withScheme(fecOptions, "none"), far, far).succeed(t)
	sent := o.parts(t, "client")
	if len(sent) != 8*count {
		t.Fatalf("%d parts were handed over", len(sent))
	}
	for i, row := range sent {
		if due := sent[0]["due_s"] + float64(i/8)/30; row["message"] != float64(i/8) || math.Abs(row["due_s"]-due) > 1e-6 {
			t.Fatalf("row %d: %v", i, row)
		}
	}
	latest := slices.MaxFunc(sent, func(a, b part) int { return cmp.Compare(a["sent_s"]-a["due_s"], b["sent_s"]-b["due_s"]) })
	if lag := latest["sent_s"] - latest["due_s"]; lag < 0.2 || lag > 0.6 { // no more than a round trip
		t.Errorf("%v was handed over last, %v s late", latest, lag)
	}
	if arrived := o.parts(t, "server"); len(arrived) != 8*count {
		t.Errorf("%d parts arrived", len(arrived))
	}
}

// Neither a closed window keeps a message from being handed over as a stream, nor one before it that was not sent.
func TestMessagesAsStreamsAreHandedOverWhenTheyAreDue(t *testing.T) {
	far := link(20, 300*time.Millisecond, lossylink.Nothing)
	for _, delivery := range []messages.Delivery{messages.Stream, messages.Deadline, messages.Reliable} {
		o := exchanged(frames(30, 8000, delivery, false), withScheme(fecOptions, "none"), far, far).succeed(t)
		for _, row := range o.parts(t, "server") {
			if row["sent_s"]-row["due_s"] > 1e-9 {
				t.Fatalf("%s: %v", delivery, row)
			}
		}
	}
}

func TestMoreMessagesThanStreamsAreAllowedByDefaultWaitForNoCredit(t *testing.T) {
	const count = 400
	far := link(20, 3*time.Second, lossylink.Nothing) // 180 messages in a round trip
	for _, up := range []bool{false, true} {
		o := exchanged(frames(count, 100, messages.Stream, up), withScheme(fecOptions, "none"), far, far).succeed(t)
		sender, _ := senderAndReceiver(up)
		for _, row := range o.parts(t, sender) {
			if row["sent_s"]-row["due_s"] > 1e-9 {
				t.Fatalf("up %v: %v was not handed over when it was due", up, row)
			}
		}
	}
}

// streamFrames are the streams of messages in a sender's qlog.
type streamFrames struct {
	last  map[int]time.Time // when a byte of a message was sent last
	reset map[int]time.Time
}

func (s *streamFrames) hear(event qlogwriter.Event) {
	sent, ok := event.(qlog.PacketSent)
	if !ok {
		return
	}
	for _, f := range sent.Frames {
		switch frame := f.Frame.(type) {
		case *qlog.StreamFrame:
			if frame.StreamID%4 >= 2 {
				s.last[int(frame.StreamID/4)] = time.Now()
			}
		case *qlog.ResetStreamFrame:
			s.reset[int(frame.StreamID/4)] = time.Now()
		}
	}
}

func TestNothingOfAMessageIsSentAfterItsDeadline(t *testing.T) {
	const count = 150
	for name, links := range map[string][2]lossylink.Settings{
		"bursts": {
			link(20, 20*time.Millisecond, lossylink.GilbertElliott(1, 0.1, 0.1, 1, 0)), link(20, 20*time.Millisecond, lossylink.GilbertElliott(2, 0.05, 0.2, 1, 0)),
		},
		"losses":        {link(20, 60*time.Millisecond, lossylink.Uniform(1, 0.1)), link(20, 60*time.Millisecond, lossylink.Uniform(2, 0.2))},
		"little room":   {link(1, wifiDelay, lossylink.Nothing), link(1, wifiDelay, lossylink.Nothing)},
		"neither":       {wifi(lossylink.Nothing), wifi(lossylink.Nothing)},
		"lost feedback": {wifi(lossylink.Those(func(n uint64, _ []byte) bool { return n > 20 && n%100 < 60 })), wifi(lossylink.Nothing)},
	} {
		for _, scheme := range []string{"none", "xor"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				seen := streamFrames{map[int]time.Time{}, map[int]time.Time{}}
				x := exchanged(frames(count, 8000, messages.Deadline, false), withScheme(fecOptions, scheme), links[0], links[1])
				x.heard = seen.hear
				o := x.succeed(t)
				sent, arrived := o.parts(t, "server"), o.parts(t, "client")
				first := x.workload.Messages.Messages[int(sent[0]["message"])]
				begun := time.Date(2000, 1, 1, 0, 0, 0, int(math.Round(1e9*sent[0]["due_s"])), time.UTC).Add(-first.Due)
				for m, message := range x.workload.Messages.Messages {
					if late := begun.Add(message.Due + 100*time.Millisecond); seen.last[m].After(late.Add(time.Microsecond)) {
						t.Errorf("of message %d, something was sent %v after its deadline", m, seen.last[m].Sub(late))
					}
				}
				if resets := int(o.server["messages_reset"]); resets > len(seen.reset) || (resets > 0) != (name != "neither") {
					t.Errorf("%d messages were reset, and %d streams", resets, len(seen.reset))
				}
				whole := 0
				for m := range count {
					of := func(p part) bool { return p["message"] == float64(m) }
					if n := len(slices.DeleteFunc(slices.Clone(arrived), func(p part) bool { return !of(p) })); n == 8 {
						whole++
					}
				}
				if whole+int(o.server["messages_reset"]) < count {
					t.Errorf("%d messages arrived whole, %v were reset, of %d", whole, o.server["messages_reset"], count)
				}
			})
		}
	}
}

// The receiver takes one stream at a time, and nothing of the first one for a second.
func TestAMessageWhoseTurnComesAfterItsDeadlineIsResetAtOnce(t *testing.T) {
	const count = 20
	certificate, key := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		clientEnd, serverEnd := ends(t, wifi(lossylink.Nothing), wifi(lossylink.Nothing))
		x := exchanged(frames(count, 8000, messages.Deadline, true), withScheme(fecOptions, "plain"), lossylink.Settings{}, lossylink.Settings{})
		server, client := x.assignments(certificate, key, serverEnd)
		seen := streamFrames{map[int]time.Time{}, map[int]time.Time{}}
		surroundings, err := readSurroundings(server)
		if err != nil {
			t.Fatal(err)
		}
		e := newEndpoint(&socket.Socket{PacketConn: serverEnd}, server, surroundings, func(error) {})
		config := e.quicConfig()
		config.MaxIncomingUniStreams, config.InitialStreamReceiveWindow, config.MaxStreamReceiveWindow = 1, 1000, 1000
		listener, err := e.transport.Listen(e.tlsConfig(), config)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			connection, err := listener.Accept(t.Context())
			if err != nil {
				return
			}
			time.Sleep(time.Second)
			for range count {
				stream, err := connection.AcceptUniStream(t.Context())
				if err != nil {
					return
				}
				io.Copy(io.Discard, stream)
			}
			control, err := connection.AcceptStream(t.Context())
			if err == nil {
				err = say(control, allReceived)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		var out bytes.Buffer
		if err := runTelling(t.Context(), clientEnd, client, &out, seen.hear); err != nil {
			t.Fatal(err)
		}
		e.transport.Close()
		if resets := metricsOf(t, out.Bytes())["messages_reset"]; resets != count || len(seen.reset) != count {
			t.Errorf("%v messages were reset, %d streams; of %d", resets, len(seen.reset), count)
		}
		if _, sent := seen.last[0]; !sent || len(seen.last) != 1 {
			t.Errorf("something was sent of messages %v; of all but the first, their turn came too late", seen.last)
		}
	})
}

// peer is a client that says what it wants, to a server that expects frames from it.
type peer struct {
	t          *testing.T
	ctx        context.Context
	connection *quic.Conn
	control    *quic.Stream
}

func (p peer) say(line string) {
	if _, err := io.WriteString(p.control, line); err != nil {
		p.t.Error(err)
	}
}

func (p peer) datagram(message, part int, content []byte) {
	if err := p.connection.SendDatagram(append(messages.AppendHeader(nil, message, part), content...)); err != nil {
		p.t.Error(err)
	}
}

func (p peer) stream(content []byte) *quic.SendStream {
	stream, err := p.connection.OpenUniStreamSync(p.ctx)
	if err != nil {
		p.t.Error(err)
		return nil
	}
	if _, err := stream.Write(content); err != nil {
		p.t.Error(err)
	}
	return stream
}

func TestWhatAPeerShouldNotSendEndsTheReceiverWithOneLine(t *testing.T) {
	const count, size = 3, 1500
	right := func(message, from, to int64) []byte {
		b := make([]byte, to-from)
		content.Fill(b, 7, message*size+from)
		return b
	}
	for _, hostile := range []struct {
		naming   string
		delivery messages.Delivery
		act      func(p peer)
	}{
		{`the first stream begins with "GET MESSAGES\r\n"`, messages.Datagram, func(p peer) { p.say(getMessages) }},
		{`the first stream begins with "GET"`, messages.Datagram, func(p peer) { p.say("GET"); p.control.Close() }},
		{`the first stream has "END`, messages.Datagram, func(p peer) { p.say(putMessages + "END of all\r\n"); p.control.Close() }},
		{`the first stream has "E"`, messages.Stream, func(p peer) { p.say(putMessages + "E"); p.control.Close() }},
		{"a datagram of 3 bytes", messages.Datagram, func(p peer) {
			p.say(putMessages)
			p.connection.SendDatagram([]byte("abc"))
		}},
		{"a datagram of message 3; the last one is 2", messages.Datagram, func(p peer) {
			p.say(putMessages)
			p.datagram(1, 0, right(1, 0, 1000))
			p.datagram(0, 0, right(0, 0, 1000)) // numbers may go back
			p.datagram(3, 0, right(1, 0, 1000))
		}},
		{"a datagram of part 65535 of message 0; its last one is 1", messages.Datagram, func(p peer) {
			p.say(putMessages)
			p.datagram(0, 1<<16-1, nil)
		}},
		{"with 1001 bytes of part 0", messages.Datagram, func(p peer) {
			p.say(putMessages)
			p.datagram(0, 0, right(0, 0, 1001))
		}},
		{"part 1 of message 2 came with another content", messages.Datagram, func(p peer) {
			p.say(putMessages)
			p.datagram(2, 1, right(1, 1000, 1500))
		}},
		{"part 0 of message 0 came with another content", messages.Stream, func(p peer) {
			p.say(putMessages)
			p.stream(right(1, 0, 1500)).Close()
		}},
		{"a stream ended after 499 bytes of part 1 of message 0", messages.Stream, func(p peer) {
			p.say(putMessages)
			p.stream(right(0, 0, 1499)).Close()
		}},
		{"a stream goes on", messages.Stream, func(p peer) {
			p.say(putMessages)
			p.stream(right(0, 0, 1501)).Close()
		}},
		{"the stream of message 0 was reset", messages.Stream, func(p peer) {
			p.say(putMessages)
			p.stream(right(0, 0, 1200)).CancelWrite(1)
		}},
		{"a stream ended after 200 bytes of part 0 of message 0", messages.Deadline, func(p peer) {
			p.say(putMessages)
			p.stream(right(0, 0, 200)).Close()
		}},
		{"a stream ended after 0 bytes of part 0 of message 2", messages.Reliable, func(p peer) {
			p.say(putMessages)
			p.stream(right(0, 0, 3000)).Close()
		}},
		{"a stream goes on", messages.Reliable, func(p peer) {
			p.say(putMessages)
			p.stream(right(0, 0, 5000)).Close()
		}},
	} {
		t.Run(string(hostile.delivery)+" "+hostile.naming, func(t *testing.T) {
			err := meet(t, frames(count, size, hostile.delivery, true), hostile.act)
			if err == nil || !strings.Contains(err.Error(), hostile.naming) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the server ended with %v, which should name %q", err, hostile.naming)
			}
		})
	}
}

func TestSecondCopiesAreIgnored(t *testing.T) {
	const copies = 2000
	part := make([]byte, 1000)
	content.Fill(part, 7, 0)
	err := meet(t, frames(2, 1000, messages.Datagram, true), func(p peer) {
		p.say(putMessages)
		for range copies {
			p.datagram(0, 0, part)
		}
		p.say(endOfAll)
		p.control.Close()
		if answer, err := io.ReadAll(p.control); string(answer) != allReceived || err != nil {
			t.Errorf("the server answered %q, %v", answer, err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// meet returns how a server ends that expects a client's messages, and meets this client.
func meet(t *testing.T, workload contract.Workload, act func(p peer)) (ended error) {
	t.Helper()
	certificate, key := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		clientEnd, serverEnd := ends(t, wifi(lossylink.Nothing), wifi(lossylink.Nothing))
		x := transfer{workload: workload, options: withScheme(fecOptions, "plain"), deadline: 20 * time.Second, series: contract.Series{Messages: true}}
		server, client := x.assignments(certificate, key, serverEnd)
		ctx, stop := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() { end <- run(ctx, serverEnd, server, io.Discard) }()
		time.Sleep(time.Nanosecond) // the server listens
		surroundings, err := readSurroundings(client)
		if err != nil {
			t.Fatal(err)
		}
		e := newEndpoint(&socket.Socket{PacketConn: clientEnd}, client, surroundings, func(error) {})
		connection, err := e.dial(observer.Follow(ctx))
		if err != nil {
			t.Fatal(err)
		}
		control, err := connection.OpenStreamSync(ctx)
		if err != nil {
			t.Fatal(err)
		}
		act(peer{t, ctx, connection, control})
		time.Sleep(5 * time.Second)
		stop()
		ended = <-end
		connection.CloseWithError(0, "")
		e.transport.Close()
	})
	return ended
}
