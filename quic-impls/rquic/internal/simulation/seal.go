package simulation

import (
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
)

// seal takes the place of AES-GCM where nobody keeps packets and secrets. Lengths are the same, and the same packets are
// refused, unless somebody forges one. A tag has a checksum, and then the nonce with the beginning of the key.
type seal struct{ mark [nonceLength]byte }

// Lengths of AES-GCM's nonces and tags in bytes.
const (
	nonceLength    = 12
	checksumLength = 4
	tagLength      = checksumLength + nonceLength
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errBroken = errors.New("the packet has another key, number or content")

func newSeal(key []byte) cipher.AEAD {
	s := &seal{}
	copy(s.mark[:], key)
	return s
}

func (s *seal) NonceSize() int { return nonceLength }
func (s *seal) Overhead() int  { return tagLength }

// Seal appends the plaintext and its tag to dst.
func (s *seal) Seal(dst, nonce, plaintext, header []byte) []byte {
	tag := s.tag(nonce, plaintext, header)
	whole := slices.Grow(dst, len(plaintext)+tagLength)[:len(dst)+len(plaintext)]
	copy(whole[len(dst):], plaintext)
	return append(whole, tag[:]...)
}

// Open appends the plaintext to dst, unless the tag is not its own.
func (s *seal) Open(dst, nonce, sealed, header []byte) ([]byte, error) {
	end := len(sealed) - tagLength
	if end < 0 {
		return nil, errBroken
	}
	if tag := s.tag(nonce, sealed[:end], header); !bytes.Equal(tag[:], sealed[end:]) {
		return nil, errBroken
	}
	return append(dst, sealed[:end]...), nil
}

func (s *seal) tag(nonce, plaintext, header []byte) (tag [tagLength]byte) {
	checksum := crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, plaintext)
	binary.LittleEndian.PutUint32(tag[:], checksum)
	for i := range s.mark {
		tag[checksumLength+i] = nonce[i] ^ s.mark[i]
	}
	return tag
}
