"""Switches off the offloads that let several packets travel as one, and reads back that they are off.

One packet is then one frame on every interface: a super-packet would be one loss decision for many packets,
and one entry of a queue. Checksum offload stays on: the emulated link's TAPs have none, so the kernel fills
in checksums before a frame reaches the wire; without it, kernels before 6.11 refuse UDP_SEGMENT to the
hosts.
"""

import socket
import struct
from collections.abc import Iterable

from fecbench.topologies.ethtool import control_socket, ethtool
from fecbench.topologies.link import LinkError

MERGING_OFFLOADS = (
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    "tx-gso-list",
    "rx-gro",
    "rx-gro-list",
    "rx-gro-hw",
    "rx-lro",
    "rx-udp-gro-forwarding",
)
"""Features by the kernel's names; `ethtool -K` calls groups of them tso, gso, gro and lro."""

_GET_STRINGS, _GET_STRING_COUNT, _GET_FEATURES, _SET_FEATURES = 0x1B, 0x37, 0x3A, 0x3B
_FEATURE_STRINGS = 4  # ETH_SS_FEATURES
_NAME_SIZE = 32  # ETH_GSTRING_LEN


def switch_off_merging(interfaces: Iterable[str]) -> None:
    """Switch off merging in the namespace of the calling thread. Raises LinkError if one offload stays on,
    naming it."""
    with control_socket() as control:
        for interface in interfaces:
            names = _feature_names(control, interface)
            unwanted = {index for index, name in enumerate(names) if name in MERGING_OFFLOADS}
            _set_features(control, interface, len(names), unwanted)
            still_on = unwanted & _active_features(control, interface, len(names))
            if still_on:
                culprits = ", ".join(names[index] for index in sorted(still_on))
                raise LinkError(f"{interface}: {culprits} cannot be switched off")


def _feature_names(control: socket.socket, interface: str) -> list[str]:
    # struct ethtool_sset_info, with one word of data
    answer = ethtool(control, interface, struct.pack("=IIQI", _GET_STRING_COUNT, 0, 1 << _FEATURE_STRINGS, 0))
    count = struct.unpack("=IIQI", answer)[3]
    # struct ethtool_gstrings
    header = struct.pack("=III", _GET_STRINGS, _FEATURE_STRINGS, count)
    text = ethtool(control, interface, header + bytes(count * _NAME_SIZE))[len(header) :]
    return [text[i * _NAME_SIZE : (i + 1) * _NAME_SIZE].split(b"\0")[0].decode() for i in range(count)]


def _set_features(control: socket.socket, interface: str, count: int, off: set[int]) -> None:
    # struct ethtool_sfeatures: per block of 32 features, which are meant and which of these are wanted
    blocks = -(-count // 32)
    masks = [sum(1 << (index % 32) for index in off if index // 32 == block) for block in range(blocks)]
    body = b"".join(struct.pack("=II", mask, 0) for mask in masks)
    ethtool(control, interface, struct.pack("=II", _SET_FEATURES, blocks) + body)


def _active_features(control: socket.socket, interface: str, count: int) -> set[int]:
    # struct ethtool_gfeatures: per block available, requested, active, never changed
    blocks = -(-count // 32)
    header = struct.pack("=II", _GET_FEATURES, blocks)
    answer = ethtool(control, interface, header + bytes(16 * blocks))
    words = struct.unpack(f"={4 * blocks}I", answer[len(header) :])
    active = words[2::4]
    return {index for index in range(count) if active[index // 32] >> (index % 32) & 1}
