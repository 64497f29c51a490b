package main

import (
	"bytes"
	"testing"
	"time"
)

// served is a frame as a server sends it: with no mask.
func served(payload string) []byte {
	made := frame(text, []byte(payload))
	head := len(made) - len(payload) - 4
	made[1] &= 0x7f
	return append(made[:head:head], payload...)
}

func TestFramesThatArriveInPieces(t *testing.T) {
	for _, size := range []int{0, 5, 125, 126, 300, 1<<16 - 1, 1 << 16, 100_000} {
		payload := string(bytes.Repeat([]byte("x"), size))
		whole := append(served(payload), served("next")...)
		first := len(whole) - len(served("next"))
		for _, end := range []int{0, 1, 2, 3, first - 1} {
			if end < first {
				if _, _, rest, err := split(whole[:end]); rest != -1 || err != nil {
					t.Fatalf("%d of %d bytes: rest %d, %v", end, first, rest, err)
				}
			}
		}
		opcode, got, rest, err := split(whole)
		if opcode != text || string(got) != payload || rest != first || err != nil {
			t.Fatalf("size %d: opcode %d, %d bytes, rest %d, %v", size, opcode, len(got), rest, err)
		}
	}
}

func TestNumbersOfAnyServer(t *testing.T) {
	for message, want := range map[string]float64{
		`{"step":12,"x":1}`: 12, `{"step": 12}`: 12, `{"step":"12.5"}`: 12.5, `{"step":1.7959933213789673e+09}`: 1795993321.3789673,
	} {
		if got, found := value([]byte(message), []byte(`"step":`)); !found || got != want {
			t.Errorf("%s: %v, %v", message, got, found)
		}
	}
	for _, message := range []string{`{"step":null}`, `{"other":1}`, `{"step":`} {
		if got, found := value([]byte(message), []byte(`"step":`)); found {
			t.Errorf("%s: %v", message, got)
		}
	}
}

func TestLostAndDoubledSteps(t *testing.T) {
	one := &connection{last: -1}
	hear := func(message string) bool {
		_, measured := one.count([]byte(message), []byte(`"step":`), []byte(`"value":`))
		return measured
	}
	if hear(`{"kind":"BOOKMARK"}`) || hear(`{"kind":"UPDATED","step":3}`) {
		t.Error("what comes before the first step, and that one, are not measured")
	}
	for _, message := range []string{`{"step":4}`, `{"step":5}`, `{"step":5}`, `{"step":8}`, `{"step":9}`} {
		if !hear(message) {
			t.Errorf("%s is not measured", message)
		}
	}
	if hear(`{"kind":"SNAPSHOT","step":20}`) {
		t.Error("a snapshot is measured")
	}
	hear(`{"step":21}`)
	if one.lost != 2 || one.doubled != 1 || one.last != 21 {
		t.Errorf("lost %d, doubled %d, last %d", one.lost, one.doubled, one.last)
	}
}

func TestPercentiles(t *testing.T) {
	figures := newFigures()
	for n := 1; n <= 100; n++ {
		figures.add(time.Duration(n)*time.Millisecond, 10)
	}
	report := figures.report()
	for key, want := range map[string]float64{"p50_ms": 50.01, "p99_ms": 99.01, "max_ms": 100, "bytes_per_message": 10} {
		if got := report[key].(float64); got < want-0.005 || got > want+0.005 {
			t.Errorf("%s: %v, not %v", key, got, want)
		}
	}
}
