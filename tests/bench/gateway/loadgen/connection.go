package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

type state byte

const (
	closed     state = iota
	connecting       // until the socket can be written to
	upgrading        // until the 101
	greeting         // until connection_ack
	subscribed
)

const portsPerAddress = 20_000

var (
	headEnd  = []byte("\r\n\r\n")
	cursorAt = []byte(`"cursor":"`)
	snapshot = []byte(`"SNAPSHOT"`)
	acked    = []byte(`"connection_ack"`)
	pinged   = []byte(`"ping"`)
	failed   = []byte(`"error`) // a message of type error, or the errors of a next
	complete = []byte(`"complete"`)
)

// connection is one socket with one subscription, which outlives the socket.
type connection struct {
	number  int
	fd      int
	state   state
	cuts    int
	retryAt time.Time
	pending []byte // the begin of a frame that is not all there
	cursor  []byte
	heard   bool
	last    int64 // step of the newest message; -1 before the first
	lost    int64
	doubled int64
}

func (c *connection) open(address *syscall.SockaddrInet4) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.fd, c.pending = fd, c.pending[:0]
	const bindAddressNoPort = 24
	source := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(1 + c.number/portsPerAddress)}}
	for _, err := range []error{
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, bindAddressNoPort, 1),
		syscall.Bind(fd, source),
	} {
		if err != nil {
			return err
		}
	}
	if err := syscall.Connect(fd, address); err != nil && err != syscall.EINPROGRESS {
		return err
	}
	c.state = connecting
	return nil
}

func (c *connection) write(what []byte) error {
	sent, err := syscall.Write(c.fd, what)
	if err == nil && sent < len(what) {
		return fmt.Errorf("only %d of %d bytes were taken", sent, len(what))
	}
	return err
}

// variables are those of the configuration, with `after` if there is something to resume.
func (c *connection) variables(config Config) json.RawMessage {
	given := config.Variables[c.number%len(config.Variables)]
	if !config.Resume || len(c.cursor) == 0 {
		return given
	}
	values := map[string]any{}
	check(json.Unmarshal(given, &values))
	values["after"] = string(c.cursor)
	made, err := json.Marshal(values)
	check(err)
	return made
}

func (c *connection) subscription(config Config) []byte {
	payload := map[string]any{"query": config.Query, "variables": c.variables(config)}
	message, err := json.Marshal(map[string]any{"id": "1", "type": "subscribe", "payload": payload})
	check(err)
	return frame(text, message)
}

func (c *connection) greeting(config Config) []byte {
	payload := map[string]string{"authorization": "Bearer " + config.Tokens[c.number%len(config.Tokens)]}
	message, err := json.Marshal(map[string]any{"type": "connection_init", "payload": payload})
	check(err)
	return frame(text, message)
}

// count takes note of a message; the time from publish to now, and whether it is one that is measured.
func (c *connection) count(payload []byte, step, publishedAt []byte) (time.Duration, bool) {
	number, found := value(payload, step)
	if !found {
		return 0, false
	}
	now := int64(number)
	if c.last < 0 || bytes.Contains(payload, snapshot) {
		c.last = max(c.last, now)
		return 0, false
	}
	c.heard = true
	if now <= c.last {
		c.doubled++
	} else {
		c.lost += now - c.last - 1
		c.last = now
	}
	published, _ := value(payload, publishedAt)
	at := time.Now()
	return time.Duration((float64(at.UnixMicro())/1e6 - published) * 1e9), true
}

func (c *connection) remember(payload []byte) {
	if at := bytes.Index(payload, cursorAt); at >= 0 {
		from := payload[at+len(cursorAt):]
		if end := bytes.IndexByte(from, '"'); end >= 0 {
			c.cursor = append(c.cursor[:0], from[:end]...)
		}
	}
}

// value is the number right after `field` in a message, which is a JSON number or a string that holds one.
func value(message, field []byte) (float64, bool) {
	at := bytes.Index(message, field)
	if at < 0 {
		return 0, false
	}
	from := bytes.TrimLeft(message[at+len(field):], ` "`)
	end := bytes.IndexFunc(from, func(r rune) bool { return !('0' <= r && r <= '9' || r == '.' || r == 'e' || r == '+' || r == '-') })
	if end <= 0 {
		return 0, false
	}
	number, err := strconv.ParseFloat(unsafe.String(&from[0], end), 64)
	return number, err == nil
}

func addressOf(host string) *syscall.SockaddrInet4 {
	found, err := net.ResolveTCPAddr("tcp4", host)
	check(err)
	return &syscall.SockaddrInet4{Port: found.Port, Addr: [4]byte(found.IP.To4())}
}
