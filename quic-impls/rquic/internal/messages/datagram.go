package messages

import (
	"encoding/binary"
	"fmt"
)

// Header is the number of bytes before the content in a datagram: the message's number and the part's.
const Header = 6

// AppendHeader appends the header of a part, which stands before its content.
func AppendHeader(b []byte, message, part int) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, uint32(message)), uint16(part))
}

// Read reads a datagram. A datagram that cannot be a part of the traffic is an error.
func (t *Traffic) Read(datagram []byte) (message, part int, content []byte, err error) {
	if len(datagram) < Header {
		return 0, 0, nil, fmt.Errorf("a datagram of %d bytes has no header; it needs %d", len(datagram), Header)
	}
	message, part = int(binary.BigEndian.Uint32(datagram)), int(binary.BigEndian.Uint16(datagram[4:]))
	content = datagram[Header:]
	if message >= len(t.Messages) {
		return 0, 0, nil, fmt.Errorf("a datagram of message %d; the last one is %d", message, len(t.Messages)-1)
	}
	if parts := t.Parts(message); part >= parts {
		return 0, 0, nil, fmt.Errorf("a datagram of part %d of message %d; its last one is %d", part, message, parts-1)
	}
	if _, size := t.Part(message, part); int64(len(content)) != size {
		return 0, 0, nil, fmt.Errorf("a datagram with %d bytes of part %d of message %d, which has %d", len(content), part, message, size)
	}
	return message, part, content, nil
}
