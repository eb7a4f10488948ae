package simulation

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

type object = map[string]any

// simulator is the one of all tests, as it is that of many trials.
var simulator = New()

// certificate writes a certificate that is its own authority, and its key.
func certificate(t *testing.T, folder string, private any, public any) (path, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server.fecbench"},
		DNSNames: []string{"server.fecbench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	path, key = filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{path: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encodedKey}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path, key
}

var options = object{
	"scheme": "xor", "rate": "constant", "encoder": "preset", "code_rate": 0.9, "q_min": 0, "generation_max": 63, "redundancies": 1, "overlap": 1, "period_rtt": 0,
	"period_ms": 0, "periods": 3, "gamma": 0.01, "delta": 0.33, "flush": "stream_end", "bto_ms": 25, "bto_rtt": 0, "http": "hq",
	"packet_size": 1252, "recovery": "current",
}

// aTask downloads 20 kB over 10 Mbps with an RTT of 100 ms; change says what is different, by the keys of the top.
func aTask(t *testing.T, change object) object {
	t.Helper()
	folder := t.TempDir()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path, key := certificate(t, folder, private, public)
	task := object{
		"version": 2, "number": 7, "pairs": []object{aPair(path, key, 20_000)},
		"links":      object{"internet": object{"up": aDirection, "down": aDirection}},
		"completion": "dct_s", "timeout_s": 30, "seed": 1, "filling": nil, "processor": object{"handshake_ns": 0, "datagram_ns": 0},
		"capture": nil,
	}
	maps.Copy(task, change)
	return task
}

func aPair(path, key string, size int) object {
	client := object{
		"version": 1, "role": "client", "address": "10.0.2.2", "port": 4433, "server_name": "server.fecbench",
		"workload": object{"name": "download", "size_bytes": size}, "content_seed": 7, "options": options, "authority": path,
		"log_folder": "/nowhere", "deadline_s": 30,
	}
	server := maps.Clone(client)
	server["role"], server["certificate"], server["private_key"] = "server", path, key
	return object{"client": client, "server": server}
}

const aDirection = "rate_bps 10000000\ndelay_ns 50000000\nqueue_packets 100\n"

const everythingLost = aDirection + "model uniform\np 1\n"

func ask(t *testing.T, task object) (answer Answer, refusal string) {
	t.Helper()
	line, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	text := simulator.Answer(t, line)
	var refused Refusal
	if err := errors.Join(json.Unmarshal(text, &answer), json.Unmarshal(text, &refused)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return answer, refused.Error
}

// carriedOut asks for a trial that has to be possible.
func carriedOut(t *testing.T, task object) Answer {
	t.Helper()
	answer, refusal := ask(t, task)
	if refusal != "" {
		t.Fatal(refusal)
	}
	return answer
}

func metric(t *testing.T, e Ended, name string) float64 {
	t.Helper()
	var metrics map[string]float64
	if err := json.Unmarshal(e.Metrics, &metrics); err != nil {
		t.Fatalf("%v: %+v", err, e)
	}
	return metrics[name]
}

func TestADownloadTakesWhatTheLinkNeeds(t *testing.T) {
	answer := carriedOut(t, aTask(t, nil))
	client, server := answer.Endpoints["client"], answer.Endpoints["server"]
	if client.ExitCode != 0 || server.ExitCode != 0 || client.Stderr+server.Stderr != "" || client.Ready || !server.Ready {
		t.Errorf("%+v", answer)
	}
	// Two round trips, and 20 kB with their headers at 10 Mbps.
	if dct := metric(t, client, "dct_s"); dct < 0.216 || dct > 0.23 || dct != *answer.ClientS || dct != answer.VirtualS {
		t.Errorf("DCT %v s, client %v s, trial %v s", dct, *answer.ClientS, answer.VirtualS)
	}
	down := answer.Links[linkName].Down
	if bytes := metric(t, server, "bytes_sent"); float64(down.BytesIn) < bytes || !down.Conserved || down.Packets != down.FramesOut {
		t.Errorf("the server sent %v bytes; %+v", bytes, down)
	}
}

func TestATransferThatCannotEndEndsAtItsDeadline(t *testing.T) {
	links := object{"internet": object{"up": aDirection, "down": everythingLost}}
	answer := carriedOut(t, aTask(t, object{"links": links}))
	client := answer.Endpoints["client"]
	right := "rquic: client: handshake with 10.0.2.2:4433: not done within the deadline of 30 s\n"
	if !answer.TimedOut || client.ExitCode != 1 || client.Stderr != right || string(client.Metrics) != "null" || *answer.ClientS != 30 {
		t.Errorf("%+v", answer)
	}
	if server := answer.Endpoints["server"]; server.ExitCode != 0 || metric(t, server, "bytes_received") == 0 {
		t.Errorf("%+v", server)
	}
}

func TestATrialEndsWhenTheTimeIsOverWhateverTheClientWas(t *testing.T) {
	links := object{"internet": object{"up": aDirection, "down": everythingLost}}
	answer := carriedOut(t, aTask(t, object{"links": links, "timeout_s": 2}))
	right := "rquic: client: handshake with 10.0.2.2:4433: not done within the deadline of 2 s\n"
	if !answer.TimedOut || *answer.ClientS != 2 || answer.Endpoints["client"].Stderr != right {
		t.Errorf("%+v", answer)
	}
}

func TestWhatIsLeftInTheLinkIsInFlight(t *testing.T) {
	up := carriedOut(t, aTask(t, nil)).Links[linkName].Up
	if up.InFlight == 0 || up.FramesIn != up.FramesOut+up.InFlight { // at least the client's last words
		t.Errorf("%+v", up)
	}
}

func TestWhatIsSentDuringAnOutageIsDroppedAndCounted(t *testing.T) {
	out := aDirection + "outage_ns 150000000 400000000\n" // after the handshake
	answer := carriedOut(t, aTask(t, object{"links": object{"internet": object{"up": aDirection, "down": out}}}))
	link := answer.Links["internet"]
	if link.Up.OutageDropped != 0 {
		t.Fatalf("only downwards there is an outage: %+v", link)
	}
	if link.Down.OutageDropped == 0 || !link.Down.Conserved || *answer.ClientS < 0.4 {
		t.Fatalf("%d datagrams dropped in %v s: %+v", link.Down.OutageDropped, *answer.ClientS, link.Down)
	}
}

func TestAnAssignmentThatIsRefusedHasItsExitCode(t *testing.T) {
	for _, c := range []struct {
		change object
		code   int
		stderr string
	}{
		{object{"workload": object{"name": "video"}}, 127, `rquic: workload.name: "video" is not supported`},
		{object{"port": 0}, 2, "rquic: port: 0 is not in 1 to 65535"},
		{object{"authority": "/nowhere.pem"}, 1, "rquic: client: authority: open /nowhere.pem: no such file or directory"},
	} {
		task := aTask(t, nil)
		maps.Copy(task["pairs"].([]object)[0]["client"].(object), c.change)
		client := carriedOut(t, task).Endpoints["client"]
		if client.ExitCode != c.code || strings.TrimSpace(client.Stderr) != c.stderr {
			t.Errorf("%v: %+v", c.change, client)
		}
	}
}

func TestWithoutAServerNoClientIsStarted(t *testing.T) {
	task := aTask(t, nil)
	task["pairs"].([]object)[0]["server"].(object)["private_key"] = "/nowhere"
	answer := carriedOut(t, task)
	if _, started := answer.Endpoints["client"]; started || answer.Endpoints["server"].ExitCode != 1 || answer.ClientS != nil {
		t.Errorf("%+v", answer)
	}
}

// competing has a background that downloads so much, and says when the link is full.
func competing(t *testing.T, size int) object {
	task := aTask(t, object{"filling": object{"full_share": 0.95, "window_s": 1, "interval_s": 0.02}})
	pairs := task["pairs"].([]object)
	server := pairs[0]["server"].(object)
	task["pairs"] = append(pairs, aPair(server["certificate"].(string), server["private_key"].(string), size))
	return task
}

func TestTheForegroundBeginsWhenTheBackgroundHasFilledTheLink(t *testing.T) {
	answer := carriedOut(t, competing(t, 1<<30))
	c := answer.Competition
	// The background's client needs two round trips and its slow start, and then a second at the full rate.
	if steps := c.FillingS / 0.02; c.FillingS < 1.2 || c.FillingS > 5 || steps != float64(int(steps+0.5)) {
		t.Errorf("the link was full after %v s", c.FillingS)
	}
	if *c.ForegroundMbps <= 0 || *c.BackgroundMbps <= *c.ForegroundMbps || *c.ForegroundMbps+*c.BackgroundMbps > 10.1 {
		t.Errorf("%v and %v Mbps", *c.ForegroundMbps, *c.BackgroundMbps)
	}
	background := answer.Endpoints["background_client"]
	if !answer.BackgroundLasted || background.ExitCode != 1 || !strings.HasSuffix(background.Stderr, "interrupt signal received\n") {
		t.Errorf("%+v", background)
	}
	if answer.Endpoints["client"].ExitCode != 0 || answer.TimedOut || answer.VirtualS <= c.FillingS+*answer.ClientS-1e-9 {
		t.Errorf("%+v", answer)
	}
}

func TestABackgroundThatEndsFirstIsTold(t *testing.T) {
	answer := carriedOut(t, competing(t, 20_000))
	if _, started := answer.Endpoints["client"]; started || answer.BackgroundLasted || answer.Competition != nil || answer.TimedOut {
		t.Errorf("%+v", answer)
	}
}

func TestABackgroundThatDoesNotFillTheLinkInTimeIsATimeOut(t *testing.T) {
	task := competing(t, 1<<30)
	task["timeout_s"] = 1
	for _, pair := range task["pairs"].([]object) {
		pair["client"].(object)["deadline_s"] = 1
	}
	answer := carriedOut(t, task)
	if _, started := answer.Endpoints["client"]; started || !answer.TimedOut || answer.Competition != nil || answer.VirtualS < 1 {
		t.Errorf("%+v", answer)
	}
}

func TestAProcessorMakesTheHandshakeAndEachDatagramLonger(t *testing.T) {
	task := aTask(t, nil)
	dct := func(processor object) (handshake, dct float64) {
		task["processor"] = processor
		client := carriedOut(t, task).Endpoints["client"]
		return metric(t, client, "handshake_s"), metric(t, client, "dct_s")
	}
	handshake, all := dct(object{"handshake_ns": 0, "datagram_ns": 0})
	slowHandshake, slowAll := dct(object{"handshake_ns": 1_000_000, "datagram_ns": 0})
	if more := slowHandshake - handshake; more < 0.0019 || more > 0.0021 || slowAll-all < 0.001 {
		t.Errorf("with 1 ms a side, the handshake takes %v s more, the download %v s", more, slowAll-all)
	}
	if _, slowest := dct(object{"handshake_ns": 0, "datagram_ns": 1_000_000}); slowest < all+0.01 {
		t.Errorf("with 1 ms a datagram, the download takes %v s more", slowest-all)
	}
}

func TestWhatCannotBeCarriedOutIsRefusedInALine(t *testing.T) {
	redQueue := aDirection + "queue red\n"
	for name, c := range map[string]struct {
		change  object
		refusal string
	}{
		"no seed":       {object{"seed": nil}, "seed: missing"},
		"version":       {object{"version": 1, "links": 5}, "version: 1; this program knows version 2"},
		"three pairs":   {object{"pairs": []object{{}, {}, {}}}, "pairs: 3 of them"},
		"another link":  {object{"links": object{"lan": object{}}}, "links: one link is simulated"},
		"another queue": {object{"links": object{"internet": object{"up": aDirection, "down": redQueue}}}, "links.internet.down: queue red: must be droptail, codel, pie, fq_codel or dualpi2"},
		"no time":       {object{"timeout_s": 0}, "timeout_s: 0 is not above 0"},
		"filling":       {object{"filling": object{"full_share": 0.95, "window_s": 1, "interval_s": 0.02}}, "filling: it is for two pairs"},
		"processor":     {object{"processor": object{"handshake_ns": -1, "datagram_ns": 0}}, "processor:"},
		"unknown key":   {object{"colour": 1}, `unknown field "colour"`},
		"capture":       {object{"capture": "/proc/nowhere"}, "capture: mkdir /proc/nowhere"},
	} {
		if _, refusal := ask(t, aTask(t, c.change)); !strings.Contains(refusal, c.refusal) || strings.Contains(refusal, "\n") {
			t.Errorf("%s: %q", name, refusal)
		}
	}
}

func TestKeysWhoseSignaturesVaryInLengthAreRefused(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path, key := certificate(t, t.TempDir(), private, private.Public())
	for _, role := range []string{"client", "server"} {
		task := aTask(t, nil)
		assignment := task["pairs"].([]object)[0][role].(object)
		assignment["authority"], assignment["certificate"], assignment["private_key"] = path, path, key
		if role == "client" {
			delete(assignment, "certificate")
			delete(assignment, "private_key")
		}
		if _, refusal := ask(t, task); !strings.Contains(refusal, path+" is a certificate of a key for ECDSA; the simulator takes Ed25519 alone") {
			t.Errorf("%s: %q", role, refusal)
		}
	}
}

func TestALineThatIsNoTaskIsAnsweredAndTheNextOneCarriedOut(t *testing.T) {
	line, err := json.Marshal(aTask(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	in := "nonsense\n{\"number\": 3}\n\n" + string(line) + "\n{} {}\n" + string(line) // the last one without an end
	if err := simulator.Serve(t, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	var refused int
	for text := range strings.Lines(out.String()) {
		var refusal Refusal
		if err := json.Unmarshal([]byte(text), &refusal); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, refusal.Number)
		if refusal.Error != "" {
			refused++
		}
	}
	if !slices.Equal(numbers, []int64{0, 3, 0, 7, 0, 7}) || refused < 4 {
		t.Errorf("%v, %d refused", numbers, refused)
	}
}

// Where packets are kept they are encrypted, and all events are heard; elsewhere they are not. A trial is the same.
func TestACaptureChangesNothingOfATrial(t *testing.T) {
	for _, scheme := range []string{"none", "xor", "rlc"} {
		lossy := object{"internet": object{"up": aDirection + "model uniform\np 0.05\nseed 1\n", "down": aDirection + "model uniform\np 0.05\nseed 2\n"}}
		task := aTask(t, object{"links": lossy})
		for _, end := range task["pairs"].([]object)[0] {
			end := end.(object)
			end["options"] = maps.Clone(options)
			end["options"].(object)["scheme"] = scheme
			end["log_folder"] = t.TempDir()
		}
		without := carriedOut(t, task)
		task["capture"] = t.TempDir()
		if with := carriedOut(t, task); !reflect.DeepEqual(with, without) {
			t.Errorf("%s: %+v with a capture, %+v without", scheme, with, without)
		}
	}
}

func TestATrialInWhichGarbageWasCollectedIsAnsweredAsInvalid(t *testing.T) {
	line, err := json.Marshal(aTask(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	debug.SetGCPercent(1)
	text := simulator.Answer(t, line)
	debug.SetGCPercent(-1)
	if !bytes.Contains(text, []byte(`"invalid":"collected garbage within the trial"`)) {
		t.Errorf("%.200s", text)
	}
}

func TestACollectionThatIsNotOursIsFound(t *testing.T) {
	memory := simulator.memory
	if err := memory.undisturbed(func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := memory.undisturbed(func() error { runtime.GC(); return nil }); !errors.Is(err, errCollected) {
		t.Error(err)
	}
	hoard := func() error {
		memory.atRest(lookEvery)
		hoarded := make([]byte, 2*collectAbove)
		memory.atRest(2 * lookEvery) // while nothing else runs, it may
		runtime.KeepAlive(hoarded)
		return nil
	}
	if err := memory.undisturbed(hoard); err != nil || memory.ours == 0 {
		t.Errorf("%v, %d collections", err, memory.ours)
	}
}

func TestACollectionThatBeginsInATrialIsFoundAlsoWhenItEndsLater(t *testing.T) {
	memory := newMemory()
	hoard := make([]*[64]byte, 1<<18)
	for i := range hoard {
		hoard[i] = new([64]byte)
	}
	for size := range 24 {
		var garbage []byte
		var before uint64
		err := memory.undisturbed(func() error {
			_, before = memory.look()
			debug.SetGCPercent(1)
			for range size {
				garbage = make([]byte, 16<<10)
			}
			return nil
		})
		debug.SetGCPercent(-1)
		_, after := memory.look()
		if wasFound := errors.Is(err, errCollected); wasFound != (after > before) {
			t.Fatalf("%d × %d bytes: %v after %d collections", size, len(garbage), err, after-before)
		}
	}
	runtime.KeepAlive(hoard)
}

func TestARuntimeInWhichGoroutinesHaveNoFixedOrderIsRefused(t *testing.T) {
	if err := requireOrder(t); !errors.Is(err, errDisorder) {
		t.Errorf("%v; these tests run with Go's own runtime", err)
	}
	if answer := string(refuseAll(errDisorder)(t, []byte(`{"number": 4}`))); !strings.HasPrefix(answer, `{"number":4,"error":`) {
		t.Error(answer)
	}
}
