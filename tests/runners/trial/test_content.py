"""The content that the harness makes is that which endpoints make."""

import hashlib

from fecbench.runners.trial.content import content, sha256

# Of seed 1234567: Rosetta Code, "Pseudo-random numbers/Splitmix64".
PUBLISHED = (6457827717110365317, 3203168211198807973, 9817491932198370423)


def test_it_is_the_published_sequence_in_little_endian_words() -> None:
    assert content(1234567, 24) == b"".join(word.to_bytes(8, "little") for word in PUBLISHED)


def test_a_shorter_content_is_the_beginning_of_a_longer_one() -> None:
    for size_bytes in (0, 1, 7, 8, 9, 1000):
        for seed in (0, 1, 2**63, 2**64 - 1):
            assert len(content(seed, size_bytes)) == size_bytes
            assert content(seed, 2000).startswith(content(seed, size_bytes))
            assert sha256(seed, size_bytes) == hashlib.sha256(content(seed, size_bytes)).hexdigest()
