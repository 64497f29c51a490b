package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	text  = 1
	bye   = 8
	ping  = 9
	pong  = 10
	final = 0x80
)

var errFragmented = errors.New("a fragmented or compressed frame")

// frame is a frame of a client. The key of its mask is zero, which leaves the payload as it is.
func frame(opcode byte, payload []byte) []byte {
	made := []byte{final | opcode}
	switch {
	case len(payload) < 126:
		made = append(made, 0x80|byte(len(payload)))
	case len(payload) < 1<<16:
		made = binary.BigEndian.AppendUint16(append(made, 0x80|126), uint16(len(payload)))
	default:
		made = binary.BigEndian.AppendUint64(append(made, 0x80|127), uint64(len(payload)))
	}
	return append(append(made, 0, 0, 0, 0), payload...)
}

// split takes the first frame off what was read; a rest of -1 says that it is not all there yet.
func split(read []byte) (opcode byte, payload []byte, rest int, err error) {
	if len(read) < 2 {
		return 0, nil, -1, nil
	}
	if read[0]&0xf0 != final {
		return 0, nil, 0, errFragmented
	}
	head, size := 2, uint64(read[1]&0x7f)
	switch size {
	case 126:
		head = 4
	case 127:
		head = 10
	}
	if len(read) < head {
		return 0, nil, -1, nil
	}
	switch size {
	case 126:
		size = uint64(binary.BigEndian.Uint16(read[2:]))
	case 127:
		size = binary.BigEndian.Uint64(read[2:])
	}
	if uint64(len(read)-head) < size {
		return 0, nil, -1, nil
	}
	end := head + int(size)
	return read[0] & 0x0f, read[head:end], end, nil
}

func upgrade(config Config) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n", config.Path, config.Host)
}
