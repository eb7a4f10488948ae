"""A trial of messages that never ran: datagrams over one link, by the oracle's verdicts alone.

Times are exact: a part is sent when its message is due, one behind the other at the link's rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fecbench.dropper.command import Counters
from fecbench.dropper.draws import pack
from fecbench.dropper.model import verdicts
from fecbench.dropper.parameters import loss_model
from fecbench.runners.tasks.outcome import DropperOutcome, EndpointOutcome, Outcome
from fecbench.runners.tasks.task import EndpointTask, Task
from fecbench.runners.tasks.validity import Validity
from fecbench.runners.workloads.messages import form as messages
from fecbench.runners.workloads.messages import traffic
from fecbench.topologies.link import DIRECTIONS, Direction, LinkSettings
from fecbench.topologies.link_report import DirectionReport
from tests.support import tasks
from tests.support.link_reports import direction_report, link_report

BEGAN_S = 81_234.5
"""Beginning, by the monotonic clock."""
OWD_MS, BANDWIDTH_MBPS = 20.0, 10.0
OVERHEAD_BYTES = 42
HEADER_BYTES = 6
OF_VIRTUAL = {"backend": "virtual", "late_bound_us": None}
SENT_HEADER = "t_s,connection,message,part,due_s,sent_s,bytes"
ARRIVED_HEADER = "t_s,connection,message,part,arrived_s,bytes"


@dataclass
class Row:
    """A part on its way."""

    message: int
    part: int
    bytes: int
    due_s: float
    sent_s: float
    arrived_s: float
    lost: bool


@dataclass
class Radio:
    """The messages that are sent over a link; a test changes the rows, or the files' content."""

    loss: dict[str, Any] = field(default_factory=lambda: {"model": "uniform", "p": 0.02})
    seed: int = 7
    timetable: Sequence[Sequence[int]] = field(default_factory=lambda: traffic.regular(30, 8000, 10))
    part_bytes: int = 1000
    delivery: str = "datagram"
    direction: Direction = "down"
    deadline_ms: float = 100.0
    playout_ms: tuple[float, ...] = (50.0, 100.0, 200.0)
    series: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows: list[Row] = []
        free_s = 0.0
        for number, (due_us, size) in enumerate(self.timetable):
            for part in range(traffic.parts(size, self.part_bytes)):
                content = min(self.part_bytes, size - part * self.part_bytes)
                takes_s = 8 * (content + HEADER_BYTES + OVERHEAD_BYTES) / (1e6 * BANDWIDTH_MBPS)
                due_s = due_us / 1e6
                free_s = max(free_s, due_s) + takes_s
                row = Row(number, part, content, due_s, due_s, free_s + OWD_MS / 1e3, False)
                self.rows.append(row)
        self.dropped = verdicts(loss_model(self.loss), self.seed, len(self.rows))
        for row, lost in zip(self.rows, self.dropped, strict=True):
            row.lost = bool(lost)
        self.lasted_s = self.rows[-1].arrived_s + 2 * OWD_MS / 1e3

    @property
    def ends(self) -> tuple[str, str]:
        """The sender's name and the receiver's."""
        return ("server", "client") if self.direction == "down" else ("client", "server")

    @property
    def arrived(self) -> list[Row]:
        """Rows in the order of their arrival."""
        return sorted((row for row in self.rows if not row.lost), key=lambda row: row.arrived_s)

    def task(self) -> Task:
        end = EndpointTask(implementation="radio", options={}, series=self.series)
        workload = {
            "name": "messages",
            "direction": self.direction,
            "delivery": self.delivery,
            "deadline_ms": self.deadline_ms,
            "part_bytes": self.part_bytes,
            "timetable": [list(message) for message in self.timetable],
        }
        settings = LinkSettings.symmetric(bandwidth_mbps=BANDWIDTH_MBPS, owd_ms=OWD_MS)
        pair = tasks.pair(
            client=end,
            server=end,
            workload=workload,
            demand=messages.Messages().demand_of(workload),
            playout_ms=list(self.playout_ms),
        )
        return tasks.task(
            tasks.link(settings, self.loss, self.loss, late_bound_us=1000),
            pair,
            backend="virtual",
            seeds={"content": 1, "internet/up": self.seed, "internet/down": self.seed},
            timeout_s=60,
            validity=Validity(),
        )

    def sent_file(self) -> str:
        lines = [
            f"{row.sent_s:.6f},0,{row.message},{row.part},{BEGAN_S + row.due_s:.9f},"
            f"{BEGAN_S + row.sent_s:.9f},{row.bytes}"
            for row in self.rows
        ]
        return "\n".join([SENT_HEADER, *lines, ""])

    def arrived_file(self) -> str:
        lines = [
            f"{row.arrived_s:.6f},0,{row.message},{row.part},{BEGAN_S + row.arrived_s:.9f},{row.bytes}"
            for row in self.arrived
        ]
        return "\n".join([ARRIVED_HEADER, *lines, ""])

    def outcome(self, sent: str | bytes | None = None, arrived: str | bytes | None = None) -> Outcome:
        """Return the outcome, with other files in place of the right ones."""
        files = {
            self.ends[0]: _bytes(self.sent_file() if sent is None else sent),
            self.ends[1]: _bytes(self.arrived_file() if arrived is None else arrived),
        }
        metrics: dict[str, dict[str, float]] = {"client": {"dct_s": self.lasted_s}, "server": {}}
        return Outcome(
            backend="virtual",
            client_s=self.lasted_s,
            virtual_s=self.lasted_s,
            stalled_s=0.0,
            endpoints={
                name: EndpointOutcome(
                    ready=True, exit_code=0, metrics=metrics[name], series={"messages": files[name]}
                )
                for name in ("client", "server")
            },
            links={"internet": link_report({way: self._direction(way) for way in DIRECTIONS}, **OF_VIRTUAL)},
            droppers={"internet": {direction: self._dropped(direction) for direction in DIRECTIONS}},
        )

    def _packets(self, direction: Direction) -> int:
        """The other direction carries nothing."""
        return len(self.rows) if direction == self.direction else 0

    def _dropped(self, direction: Direction) -> DropperOutcome:
        packets = self._packets(direction)
        dropped = self.dropped[:packets]
        counters = Counters(
            seen=packets, dropped=int(dropped.sum()), other=0, gso=0, truncated=0, fragments=0
        )
        return DropperOutcome(counters=counters, packets=packets, bitmap=pack(dropped))

    def _direction(self, direction: Direction) -> DirectionReport:
        frames = self._packets(direction)
        size = sum(row.bytes + HEADER_BYTES + OVERHEAD_BYTES for row in self.rows) if frames else 0
        return direction_report(frames, bytes_in=size, bytes_out=size)


def in_stream_order(radio: Radio, delay_s: float) -> None:
    """Delay lost parts by `delay_s`; one stream delivers all parts in its order."""
    ready_s = 0.0
    for row in radio.rows:
        ready_s = max(ready_s, row.arrived_s + delay_s * row.lost)
        row.arrived_s, row.lost = ready_s, False


def lossless(**changes: Any) -> Radio:
    """A radio that loses nothing."""
    return Radio(loss={"model": "uniform", "p": 0.0}, **changes)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
