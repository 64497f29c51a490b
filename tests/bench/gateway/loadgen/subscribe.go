package main

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
	"unsafe"
)

const (
	retryEvery    = 200 * time.Millisecond
	edgeTriggered = 1 << 31 // a read never fills the buffer, so it takes all there is
)

// crowd is all connections, worked on by one thread: a read and a few scans a message, as the generator has to be
// cheaper than what it measures.
type crowd struct {
	config  Config
	address *syscall.SockaddrInet4
	upgrade []byte
	step    []byte
	time    []byte

	epoll   int
	byFd    []*connection
	all     []*connection
	waiting []*connection // closed, to be opened in this order
	opening int
	live    int
	warm    int
	cuts    int64
	began   time.Time
	ready   bool
	read    []byte
	figures *Figures
}

func subscribe(config Config, commands <-chan Command) {
	epoll, err := syscall.EpollCreate1(0)
	check(err)
	crowd := &crowd{
		config: config, address: addressOf(config.Host), upgrade: upgrade(config),
		step: []byte(config.StepField), time: []byte(config.TimeField),
		epoll: epoll, began: time.Now(), read: make([]byte, 1<<20), figures: newFigures(),
	}
	for number := range config.Connections {
		one := &connection{number: number, last: -1}
		crowd.all, crowd.waiting = append(crowd.all, one), append(crowd.waiting, one)
	}
	crowd.run(commands)
}

func (c *crowd) run(commands <-chan Command) {
	events := make([]syscall.EpollEvent, 1024)
	for {
		c.openSome()
		count, err := syscall.EpollWait(c.epoll, events, 10)
		if err != nil && err != syscall.EINTR {
			check(err)
		}
		for _, event := range events[:max(count, 0)] {
			if one := c.byFd[event.Fd]; one != nil {
				if err := c.serve(one, event.Events); err != nil {
					c.cut(one, err)
				}
			}
		}
		select {
		case command, open := <-commands:
			if !open {
				return
			}
			c.obey(command)
		default:
		}
	}
}

func (c *crowd) openSome() {
	for c.opening < c.config.InFlight && len(c.waiting) > 0 && time.Now().After(c.waiting[0].retryAt) {
		one := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.opening++
		if err := one.open(c.address); err != nil {
			c.cut(one, err)
			continue
		}
		for len(c.byFd) <= one.fd {
			c.byFd = append(c.byFd, nil)
		}
		c.byFd[one.fd] = one
		event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT, Fd: int32(one.fd)}
		check(syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, one.fd, &event))
	}
}

// cut closes a connection that failed; it is opened again after a while.
func (c *crowd) cut(one *connection, why error) {
	c.figures.fail(why.Error())
	if one.state == subscribed {
		c.live--
	} else {
		c.opening--
	}
	if one.fd > 0 {
		if one.fd < len(c.byFd) {
			c.byFd[one.fd] = nil
		}
		syscall.Close(one.fd)
	}
	c.cuts++
	one.fd, one.state, one.retryAt = 0, closed, time.Now().Add(retryEvery)
	c.waiting = append(c.waiting, one)
}

func (c *crowd) serve(one *connection, events uint32) error {
	if one.state == connecting {
		if events&(syscall.EPOLLERR|syscall.EPOLLHUP) != 0 {
			return fmt.Errorf("refused")
		}
		event := syscall.EpollEvent{Events: syscall.EPOLLIN | edgeTriggered, Fd: int32(one.fd)}
		check(syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_MOD, one.fd, &event))
		one.state = upgrading
		return one.write(c.upgrade)
	}
	held := copy(c.read, one.pending)
	size, failure := readNow(one.fd, c.read[held:])
	if failure == syscall.EAGAIN || failure == syscall.EINTR {
		return nil
	}
	if failure != 0 {
		return failure
	}
	if size == 0 {
		return fmt.Errorf("the server hung up")
	}
	rest, err := c.take(one, c.read[:held+size])
	one.pending = append(one.pending[:0], rest...)
	return err
}

// readNow reads without telling Go's scheduler, as it never blocks.
func readNow(fd int, into []byte) (int, syscall.Errno) {
	size, _, failure := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&into[0])), uintptr(len(into)))
	return int(size), failure
}

// take works on what was read and returns what has to wait for more.
func (c *crowd) take(one *connection, read []byte) ([]byte, error) {
	if one.state == upgrading {
		end := bytes.Index(read, headEnd)
		if end < 0 {
			return read, nil
		}
		if !bytes.HasPrefix(read, []byte("HTTP/1.1 101")) {
			return nil, fmt.Errorf("no upgrade: %s", bytes.SplitN(read, []byte("\r"), 2)[0])
		}
		one.state, read = greeting, read[end+len(headEnd):]
		if err := one.write(one.greeting(c.config)); err != nil {
			return nil, err
		}
	}
	for {
		opcode, payload, end, err := split(read)
		if err != nil {
			return nil, err
		}
		if end < 0 {
			return read, nil
		}
		if err := c.hear(one, opcode, payload); err != nil {
			return nil, err
		}
		read = read[end:]
	}
}

func (c *crowd) hear(one *connection, opcode byte, payload []byte) error {
	switch opcode {
	case text:
		if one.state == greeting {
			return c.greeted(one, payload)
		}
		return c.message(one, payload)
	case ping:
		return one.write(frame(pong, payload))
	case bye:
		code := 0
		if len(payload) >= 2 {
			code = int(payload[0])<<8 | int(payload[1])
			payload = payload[2:]
		}
		return fmt.Errorf("closed with %d %s", code, payload)
	}
	return nil
}

func (c *crowd) greeted(one *connection, payload []byte) error {
	if bytes.Contains(payload, acked) {
		one.state = subscribed
		c.opening--
		c.live++
		c.announce()
		return one.write(one.subscription(c.config))
	}
	if bytes.Contains(payload, pinged) {
		return one.write(frame(text, []byte(`{"type":"pong"}`)))
	}
	return fmt.Errorf("not greeted: %s", payload)
}

func (c *crowd) announce() {
	if c.live == len(c.all) && !c.ready {
		c.ready = true
		say(map[string]any{"event": "ready", "setup_seconds": time.Since(c.began).Seconds()})
	}
}

func (c *crowd) message(one *connection, payload []byte) error {
	heard := one.heard
	took, measured := one.count(payload, c.step, c.time)
	if measured {
		c.figures.add(took, len(payload))
	}
	if c.config.Resume {
		one.remember(payload)
	}
	if one.heard && !heard {
		if c.warm++; c.warm == len(c.all) {
			say(map[string]any{"event": "warm"})
		}
	}
	if measured || one.last >= 0 && bytes.Contains(payload, snapshot) {
		return nil
	}
	return c.other(one, payload)
}

// other is what has no step: pings, bookmarks, and ends.
func (c *crowd) other(one *connection, payload []byte) error {
	switch {
	case bytes.Contains(payload, failed):
		return fmt.Errorf("%s", payload)
	case bytes.Contains(payload, pinged):
		return one.write(frame(text, []byte(`{"type":"pong"}`)))
	case bytes.Contains(payload, complete):
		return fmt.Errorf("completed")
	}
	return nil
}

func (c *crowd) obey(command Command) {
	switch command.Name {
	case "measure":
		c.figures.reset()
		c.cuts = 0
		for _, one := range c.all {
			one.lost, one.doubled = 0, 0
		}
	case "report":
		say(c.report(command.Last))
	default:
		fatal("unknown command " + command.Name)
	}
}

func (c *crowd) report(last []int64) map[string]any {
	var lost, doubled, missing int64
	for _, one := range c.all {
		lost += one.lost
		doubled += one.doubled
		if len(last) > 0 {
			missing += max(last[one.number%len(last)]-one.last, 0)
		}
	}
	report := c.figures.report()
	report["lost"], report["doubled"], report["missing"] = lost, doubled, missing
	report["live"], report["cuts"] = c.live, c.cuts
	return report
}
