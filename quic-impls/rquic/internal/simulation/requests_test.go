package simulation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// aSession is a task whose client is told in the course of the trial what to ask for.
func aSession(t *testing.T) object {
	t.Helper()
	task := aTask(t, nil)
	for _, end := range task["pairs"].([]object)[0] {
		end.(object)["workload"] = object{"name": "requests"}
	}
	return task
}

// told carries out a task with a harness that replies so; the lines that the harness was asked, and the answer.
func told(t *testing.T, task object, replies ...string) (questions []question, answer Answer, refusal string) {
	t.Helper()
	var out bytes.Buffer
	in := bufio.NewReader(strings.NewReader(strings.Join(replies, "\n") + "\n"))
	simulator.harness = &harness{in: in, out: &out}
	defer func() { simulator.harness = nil }()
	answer, refusal = ask(t, task)
	for line := range strings.Lines(out.String()) {
		var q question
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q)
	}
	return questions, answer, refusal
}

func reads(lines ...string) string {
	return fmt.Sprintf(`{"number": 7, "lines": [%s]}`, strings.Join(lines, ", "))
}

type said struct {
	Bytes       int
	RequestedAt float64 `json:"requested_at"`
	FirstByteAt float64 `json:"first_byte_at"`
	DoneAt      float64 `json:"done_at"`
}

func TestAClientAsksForWhatItIsToldWhenItIsTold(t *testing.T) {
	task := aSession(t)
	replies := []string{
		reads(`[0, "{\"get\": 20000}"]`, `[9000000000, null]`),
		`{"version": 2, "number": 8}`, // a task that came before the reply
		reads(`[2000000000, "{\"get\": 5000}"]`, `[9000000000, null]`),
		reads(`[2500000000, null]`),
	}
	questions, answer, refusal := told(t, task, replies...)
	if refusal != "" || answer.Endpoints["client"].ExitCode != 0 {
		t.Fatalf("%s; %+v", refusal, answer.Endpoints)
	}
	if len(questions) != 3 || len(questions[0].Objects) != 0 {
		t.Fatalf("asked %+v", questions)
	}
	for n, right := range []said{{20000, 0, 0.2, 0.216}, {5000, 2, 2.1, 2.104}} {
		var got said
		if err := json.Unmarshal(questions[n+1].Objects[0], &got); err != nil {
			t.Fatal(err)
		}
		// Two round trips at first, one then, with headers.
		late := got.DoneAt - right.DoneAt
		if got.Bytes != right.Bytes || got.RequestedAt != right.RequestedAt || got.FirstByteAt < right.FirstByteAt || late < 0 || late > 0.01 {
			t.Errorf("said %+v, right is about %+v", got, right)
		}
		if questions[n+1].NowS != got.DoneAt {
			t.Errorf("asked at %v, and it came at %v", questions[n+1].NowS, got.DoneAt)
		}
	}
	if dct := metric(t, answer.Endpoints["client"], "dct_s"); dct != 2.5 {
		t.Errorf("ended after %v s", dct)
	}
	again, other, _ := told(t, task, replies...)
	if fmt.Sprint(again) != fmt.Sprint(questions) || other.Links[linkName].Down.Times != answer.Links[linkName].Down.Times {
		t.Error("the same replies came to something else")
	}
}

func TestWhatIsOnItsWayIsGivenUpWhenTheInputEnds(t *testing.T) {
	_, answer, refusal := told(t, aSession(t), reads(`[0, "{\"get\": 100000000}"]`, `[1000000000, null]`))
	client := answer.Endpoints["client"]
	if refusal != "" || client.ExitCode != 0 || metric(t, client, "dct_s") != 1 {
		t.Errorf("%s; %+v", refusal, client)
	}
}

func TestAHarnessThatRepliesNothingRightEndsTheTrial(t *testing.T) {
	for reply, naming := range map[string]string{
		"":                             "no reply",
		`{"number": 6, "lines": []}`:   "the reply is to task 6",
		`{"number": 7, "lines": "so"}`: "no reply",
	} {
		if _, _, refusal := told(t, aSession(t), reply); !strings.Contains(refusal, naming) {
			t.Errorf("%q: %q, which should name %q", reply, refusal, naming)
		}
	}
	if _, refusal := ask(t, aSession(t)); !strings.Contains(refusal, "nobody says what is to be asked for") {
		t.Errorf("%q", refusal)
	}
}

func TestALineThatIsNoneFailsTheClient(t *testing.T) {
	_, answer, _ := told(t, aSession(t), reads(`[0, "get"]`))
	if client := answer.Endpoints["client"]; client.ExitCode != 1 || !strings.Contains(client.Stderr, `standard input: "get"`) {
		t.Errorf("%+v", client)
	}
}
