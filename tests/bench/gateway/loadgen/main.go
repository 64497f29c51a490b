// Loadgen opens GraphQL subscriptions over graphql-transport-ws, or sends GraphQL requests over HTTP, and reports what
// came of it. Linux only.
//
//	loadgen config.json
//
// The file is a Config. Commands come in on stdin, one a line: `measure` resets every count, `report` or
// `report [12, 12, …]` answers with one (the numbers are the last step that was published to each of the variables, so
// that what is missing at the end counts as lost), and the end of stdin ends it. Answers go to stdout, one JSON object
// a line, with an `event`: `ready` (every connection is subscribed), `warm` (each has had a message), `report`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Config says what to do. Mode is `subscribe` or `http`.
type Config struct {
	Mode   string   `json:"mode"`
	Host   string   `json:"host"` // address and port
	Path   string   `json:"path"`
	Tokens []string `json:"tokens"` // connection i shows number i modulo their count

	// subscribe
	Connections int               `json:"connections"`
	InFlight    int               `json:"in_flight"` // connections that are being set up at the same time
	Query       string            `json:"query"`
	Variables   []json.RawMessage `json:"variables"` // connection i takes number i modulo their count
	Resume      bool              `json:"resume"`    // after a cut, subscribe with `after`: the last cursor
	StepField   string            `json:"step_field"`
	TimeField   string            `json:"time_field"`

	// http
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate"` // requests a second; 0 for as many as are answered
	Body        string  `json:"body"` // @N@ becomes the number of the request, @TIME@ an instant of its own
}

// Command is a line of stdin.
type Command struct {
	Name string
	Last []int64
}

func main() {
	if len(os.Args) != 2 {
		fatal("usage: loadgen config.json")
	}
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var config Config
	check(json.Unmarshal(text, &config))
	raiseFileLimit()
	commands := make(chan Command)
	go readCommands(commands)
	switch config.Mode {
	case "subscribe":
		subscribe(config, commands)
	case "http":
		request(config, commands)
	default:
		fatal("unknown mode " + config.Mode)
	}
}

func readCommands(into chan<- Command) {
	defer close(into)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		command := Command{Name: name}
		if rest != "" {
			check(json.Unmarshal([]byte(rest), &command.Last))
		}
		into <- command
	}
}

func raiseFileLimit() {
	var limit syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

func say(answer any) {
	text, err := json.Marshal(answer)
	check(err)
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		fatal(err.Error())
	}
}

func fatal(message string) {
	fmt.Fprintln(os.Stderr, "loadgen:", message)
	os.Exit(1)
}
