"""A client's session with the server of a field: probes, and transfers, over one control connection."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from fecbench.runners.field import probe_trains
from fecbench.runners.field.connection import Connection, ConnectionLost, Place
from fecbench.runners.field.volley import Volley
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.outcome import EndpointOutcome, FullPacket, HostOutcome, Probe
from fecbench.runners.tasks.task import Task

ANSWERED_S = 5.0
"""A path on which no probe was answered for so long carries no UDP."""
ANSWER_S = 60.0
"""A server that says nothing for so long is gone: it may be waiting for another session's end."""


class OrderRefusal(ConnectionLost):
    """Raised when the server will not do what it is asked for. The line is its own."""


@dataclass
class Train:
    """Probes of the path, as both ends saw them."""

    probes: list[Probe] = field(default_factory=list)
    address: str = ""
    outside: str = ""
    mtu: int = 0
    ttl: dict[str, int] = field(default_factory=dict)
    """TTL of probes at their end, in the directions in which it is known."""
    lasted_s: float = 0.0
    has_drained: bool = False

    @property
    def answered_ms(self) -> list[float]:
        return [probe.rtt_ms for probe in self.probes if probe.rtt_ms is not None]


class Session:
    """An open session. `least_rtt_ms` is the least round-trip time that it has seen."""

    def __init__(self, place: Place, tls: ssl.SSLContext, implementations: Sequence[str]) -> None:
        """Raises ConnectionLost where no server answers."""
        self.place = place
        self._connection = Connection.to(place, tls)
        self.least_rtt_ms = float("inf")
        self.server_ahead_s = 0.0
        """Lead of its monotonic clock, by the probe with the least round-trip time."""
        self.hello = self._ask({"order": "hello", "implementations": list(implementations)})

    def close(self) -> None:
        """End the session."""
        with contextlib.suppress(ConnectionLost):  # the server finds out itself
            self._connection.send({"order": "bye"})
        self._connection.close()

    @property
    def server_address(self) -> str:
        """The address at which the server was reached."""
        return self._connection.peer

    @property
    def own_address(self) -> str:
        """This host's address towards the server."""
        return self._connection.own_address

    def _ask(self, order: dict[str, Any], limit_s: float = ANSWER_S) -> dict[str, Any]:
        self._connection.send(order)
        return self._answer(limit_s)

    def _answer(self, limit_s: float = ANSWER_S) -> dict[str, Any]:
        answer = self._connection.receive(limit_s)
        if "refused" in answer:
            raise OrderRefusal(f"the server: {answer['refused']}")
        return answer

    def rest(self, limit_s: float = probe_trains.REST_S) -> Train:
        """Probe until the queue has drained."""
        return self._probe(
            lambda sent, last: (
                probe_trains.has_drained(last, min([self.least_rtt_ms, *sent.round_trips_ms.values()]))
                or (len(sent.times) * probe_trains.INTERVAL_S > ANSWERED_S and not sent.round_trips_ms)
            ),
            limit_s,
        )

    def train(self, lasts_s: float = probe_trains.TRAIN_S) -> Train:
        """Probe for so long."""
        return self._probe(lambda _sent, _last: False, lasts_s)

    def _probe(self, until: Callable[[probe_trains.Sent, deque[float]], bool], limit_s: float) -> Train:
        token = probe_trains.token()
        self._ask({"order": "probe", "token": token})
        try:
            sent = probe_trains.send(
                self.server_address, self.place.port, bytes.fromhex(token), until, limit_s
            )
        except OSError as error:
            raise self._unreachable(error) from None
        answer = self._ask({"order": "probed"})
        try:
            arrived = {int(number): float(at_s) for number, at_s in answer["arrived"]}
            outside = ", ".join(map(str, answer["sources"]))
            ttl = {"up": int(answer["ttl"]), "down": sent.ttl}
        except (KeyError, TypeError, ValueError):
            raise ConnectionLost("the server sent what is no list of probes") from None
        since = sent.times[0] if sent.times else 0.0
        ahead = sent.server_ahead(arrived)
        if ahead is not None and ahead[0] < self.least_rtt_ms:
            self.server_ahead_s = ahead[1]
        self.least_rtt_ms = min([self.least_rtt_ms, *sent.round_trips_ms.values()])
        last = deque(list(sent.round_trips_ms.values())[-5:], maxlen=5)
        return Train(
            probes=sent.probes(arrived, since),
            address=sent.address,
            outside=outside,
            mtu=sent.mtu,
            ttl={name: value for name, value in ttl.items() if value},
            lasted_s=sent.times[-1] - since if sent.times else 0.0,
            has_drained=probe_trains.has_drained(last, self.least_rtt_ms),
        )

    def _unreachable(self, error: OSError) -> ConnectionLost:
        return ConnectionLost(f"{self.place}: nothing can be sent there: {error.strerror or error}")

    def volley(self) -> list[FullPacket]:
        """Send a volley, and have it sent back."""
        token = probe_trains.token()
        self._ask({"order": "volley", "token": token})
        try:
            volley = Volley(self.server_address, self.place.port, bytes.fromhex(token))
        except OSError as error:
            raise self._unreachable(error) from None
        try:
            volley.send()
            arrivals = _times(self._ask({"order": "sent"}), "arrived")
            volley.send_again(arrivals)
            self._ask({"order": "sent"})
            volley.receive(self._connection.fileno())
        finally:
            volley.close()
        return volley.packets(arrivals, _times(self._answer(), "answered"))

    def begin(self, task: Task) -> str | EndpointOutcome:
        """Have the server of a task started: the authority of its certificate, or how it ended at once.

        Raises ConnectionLost, and OrderRefusal.
        """
        answer = self._ask({"order": "transfer", "task": task.model_dump(mode="json")})
        if "authority" in answer:
            return str(answer["authority"])
        return _endpoint(answer)

    def end(self) -> tuple[EndpointOutcome, HostOutcome]:
        """Have the server ended: how it did, and what happened to its host."""
        answer = self._ask({"order": "end"})
        try:
            host = HostOutcome.model_validate(answer.get("host"))
        except ValidationError:
            raise ConnectionLost("the server sent what is no report of its host") from None
        return _endpoint(answer), host


def require_programs(session: Session, names: Sequence[str]) -> None:
    """Raises Refusal for an implementation that the server lacks."""
    programs = session.hello.get("implementations", {})
    for name in names:
        if lacks := programs.get(name, {}).get("lacks"):
            raise Refusal(f"{session.place}: {lacks}")


def _times(answer: dict[str, Any], name: str) -> dict[int, float]:
    try:
        return {int(number): float(at_s) for number, at_s in answer[name]}
    except (KeyError, TypeError, ValueError):
        raise ConnectionLost("the server sent what is no list of packets") from None


def _endpoint(answer: dict[str, Any]) -> EndpointOutcome:
    try:
        return EndpointOutcome.model_validate_json(json.dumps(answer.get("ended")))  # bytes are base64
    except ValidationError:
        raise ConnectionLost("the server sent what is no outcome of an endpoint") from None
