"""The ioctls of ethtool (linux/ethtool.h): microseconds, where a run of `ethtool` takes milliseconds."""

import array
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946


def control_socket() -> socket.socket:
    """Return a socket for the interfaces of the calling thread's network namespace."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def ethtool(control: socket.socket, interface: str, request: bytes) -> bytes:
    """The request, a struct that begins with its command, as the kernel has filled it in. Raises OSError."""
    buffer = array.array("B", request)
    address, _ = buffer.buffer_info()
    fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), address))
    return buffer.tobytes()
