"""Seeds: every random choice is derived from a root seed and a path of names by hashing.

Neighbouring roots, indices or names give unrelated seeds, and a path says what its seed is for:
`seed(design.seed, "point", 3, "repetition", 0, "link", "internet", "direction", "down")`.
"""

from hashlib import blake2b


def seed(root: int, *path: str | int) -> int:
    """64 bits (0 to 2^64 - 1) that belong to `path` under `root`, by BLAKE2b.

    Each element is hashed as its type, its length and its bytes, so two different paths never hash the same
    input: ("ab", "c"), ("a", "bc"), (1,) and ("1",) are all distinct. Raises TypeError for any other type.
    """
    digest = blake2b(digest_size=8, person=b"fecbench")
    for element in (root, *path):
        digest.update(_encoded(element))
    return int.from_bytes(digest.digest(), "little")


def _encoded(element: str | int) -> bytes:
    # True == 1 in Python, so a boolean in a path would silently share its seed with an index.
    if isinstance(element, bool) or not isinstance(element, str | int):
        raise TypeError(f"a seed's path holds names and integers, not {element!r}")
    if isinstance(element, str):
        kind, content = b"s", element.encode()
    else:
        kind, content = b"i", element.to_bytes(element.bit_length() // 8 + 1, "little", signed=True)
    return kind + len(content).to_bytes(8, "little") + content
