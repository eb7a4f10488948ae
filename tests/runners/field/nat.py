"""A NAT in user space: it passes TCP and UDP on, may give its flows other ports, and has other addresses."""

import contextlib
import select
import socket
import threading

from fecbench.runners.field.connection import Place

HOME = "127.0.0.1"


class Nat:
    """A NAT before a far host on this machine. A context manager."""

    def __init__(self, far: Place, rebinds_after: int | None = None) -> None:
        """`rebinds_after` so many datagrams up, each flow gets another port."""
        self._far, self._rebinds_after = far, rebinds_after
        self.outward = HOME
        """The address on the far side."""
        self.ttl = 64
        self.ports = set[int]()
        """Ports that flows of UDP had on the far side."""
        self._streams = socket.create_server((HOME, 0))
        self.place = Place(HOME, self._streams.getsockname()[1])
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind((HOME, self.place.port))
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=passing) for passing in (self._pass_streams, self._pass_up)]

    def __enter__(self) -> "Nat":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()
        self._streams.close()
        self._datagrams.close()

    def _pass_streams(self) -> None:
        ends = dict[socket.socket, socket.socket]()
        while not self._ends.is_set():
            for readable in select.select([self._streams, *ends], [], [], 0.1)[0]:
                if readable is self._streams:
                    near, _ = self._streams.accept()
                    far = socket.create_connection((self._far.host, self._far.port))
                    ends |= {near: far, far: near}
                    continue
                content = b""
                with contextlib.suppress(OSError):
                    content = readable.recv(65536)
                other = ends[readable]
                if content:
                    other.sendall(content)
                else:
                    del ends[readable]
                    with contextlib.suppress(OSError):
                        other.shutdown(socket.SHUT_WR)
        for end in ends:
            end.close()

    def _pass_up(self) -> None:
        flows = dict[tuple[str, int], socket.socket]()
        near = dict[socket.socket, tuple[str, int]]()
        count = 0
        while not self._ends.is_set():
            for readable in select.select([self._datagrams, *near], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    if readable is not self._datagrams:
                        content = readable.recv(2048)
                        if readable in near:
                            self._datagrams.sendto(content, near[readable])
                        continue
                    datagram, source = self._datagrams.recvfrom(2048)
                    count += 1
                    is_due = self._rebinds_after and count % self._rebinds_after == 0
                    if source not in flows or is_due:
                        flows[source] = self._bound()
                        near[flows[source]] = source
                        if is_due:  # what comes to the port that it had is not let in any more
                            near = {flow: of for flow, of in near.items() if flows[of] is flow}
                    flows[source].send(datagram)

    def _bound(self) -> socket.socket:
        flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        flow.bind((self.outward, 0))
        flow.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, self.ttl)
        flow.connect((self._far.host, self._far.port))
        self.ports.add(flow.getsockname()[1])
        return flow
