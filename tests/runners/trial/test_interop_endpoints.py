"""The harness's own observations of endpoints of the interop contract, which report nothing."""

import os
import socket

from fecbench.runners.trial.interop_endpoints import bound_ports, is_bound

# Of Linux 6.18, /proc/net/udp and its udp6.
TABLE = """\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
  216: 0100007F:01BB 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4026
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr
   51: 00000000000000000000000000000000:1151 00000000000000000000000000000000:0000 07 00000000:00000000 00
"""


def test_ports_are_read_of_both_tables() -> None:
    assert bound_ports(TABLE) == {443}
    assert bound_ports(TABLE6) == {4433}
    assert bound_ports(TABLE.splitlines()[0]) == set()


def test_a_server_is_ready_when_its_port_is_bound() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as bound:
        bound.bind(("::1", 0))
        port = bound.getsockname()[1]
        assert is_bound(os.getpid(), port)
    assert not is_bound(os.getpid(), port)
