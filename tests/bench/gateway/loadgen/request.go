package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const patience = 30 * time.Second

// client sends requests on keep-alive connections of its own.
type client struct {
	config  Config
	sent    atomic.Int64
	began   time.Time
	lock    sync.Mutex
	figures *Figures
	open    map[int64]time.Time // when it was the turn of each request that has no answer yet
}

func request(config Config, commands <-chan Command) {
	all := &client{config: config, began: time.Now(), figures: newFigures(), open: map[int64]time.Time{}}
	for worker := range config.Concurrency {
		go all.work(config.Tokens[worker%len(config.Tokens)])
	}
	say(map[string]any{"event": "ready", "setup_seconds": 0})
	for command := range commands {
		all.lock.Lock()
		switch command.Name {
		case "measure":
			all.figures.reset()
		case "report":
			say(all.report())
		default:
			fatal("unknown command " + command.Name)
		}
		all.lock.Unlock()
	}
}

func (c *client) work(token string) {
	for {
		if err := c.converse(token); err != nil {
			c.lock.Lock()
			c.figures.fail(err.Error())
			c.lock.Unlock()
			time.Sleep(retryEvery)
		}
	}
}

// converse sends requests on one connection until it breaks.
func (c *client) converse(token string) error {
	there, err := net.DialTimeout("tcp", c.config.Host, patience)
	if err != nil {
		return err
	}
	defer there.Close()
	reader := bufio.NewReaderSize(there, 64<<10)
	var answer bytes.Buffer
	for {
		number := c.sent.Add(1)
		due := c.wait(number)
		if err := there.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := there.Write(c.made(token, number)); err != nil {
			return err
		}
		if err := receive(reader, &answer); err != nil {
			return err
		}
		c.lock.Lock()
		delete(c.open, number)
		c.figures.add(time.Since(due), answer.Len())
		c.lock.Unlock()
	}
}

// report counts what has no answer yet as slow as it is by now; with a rate only, where a few of those say it all.
func (c *client) report() map[string]any {
	answered := c.figures.report()
	if c.config.Rate == 0 {
		return answered
	}
	waiting := 0
	late := func(due time.Time) {
		if due.After(c.figures.began) {
			waiting++
			c.figures.add(time.Since(due), 0)
		}
	}
	for _, due := range c.open {
		late(due)
	}
	for number := c.sent.Load() + 1; c.due(number).Before(time.Now()); number++ {
		late(c.due(number))
	}
	all := c.figures.report()
	for _, key := range []string{"p50_ms", "p99_ms", "max_ms"} {
		answered[key] = all[key]
	}
	answered["unanswered"] = waiting
	return answered
}

// wait until it is the turn of a request, and say when that was: what waits for a free connection counts as slow.
func (c *client) wait(number int64) time.Time {
	if c.config.Rate == 0 {
		return time.Now()
	}
	due := c.due(number)
	time.Sleep(time.Until(due))
	c.lock.Lock()
	c.open[number] = due
	c.lock.Unlock()
	return due
}

func (c *client) due(number int64) time.Time {
	return c.began.Add(time.Duration(float64(number) / c.config.Rate * float64(time.Second)))
}

func (c *client) made(token string, number int64) []byte {
	body := strings.ReplaceAll(c.config.Body, "@N@", fmt.Sprint(number))
	if strings.Contains(body, "@TIME@") {
		at := time.Unix(2_000_000_000, 0).UTC().Add(time.Duration(number) * time.Millisecond)
		body = strings.ReplaceAll(body, "@TIME@", at.Format("2006-01-02T15:04:05.000Z"))
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json\r\nContent-Length: %d\r\n\r\n%s",
		c.config.Path, c.config.Host, token, len(body), body)
}

func receive(reader *bufio.Reader, into *bytes.Buffer) error {
	answer, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	into.Reset()
	if _, err := io.Copy(into, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || bytes.Contains(into.Bytes(), []byte(`"errors"`)) ||
		bytes.Contains(into.Bytes(), []byte(`"REFUSED"`)) {
		return fmt.Errorf("%d %s", answer.StatusCode, into.Bytes())
	}
	return nil
}
