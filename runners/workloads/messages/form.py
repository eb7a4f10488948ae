"""The workload `messages`: real-time traffic, messages that become due at given times, in one direction."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.messages import noted, possible, traffic
from fecbench.runners.workloads.messages.noted import SERIES, WHOLE
from fecbench.runners.workloads.messages.traffic import Timetable, Trace
from fecbench.runners.workloads.timetable_file import LONGEST_S
from fecbench.runners.workloads.timetabled import Timetabled
from fecbench.runners.workloads.workload import (
    SAMPLE_BYTES,
    Surroundings,
    Transfer,
)

USUAL_PLAYOUT_MS = 100.0
"""The on-time ratio at this playout delay is always computed."""


class Messages(Timetabled):
    name = asked_for = "messages"
    summary = "Messages that become due at given times, as video frames and voice do, in one direction."
    parameters: ClassVar = {
        "rate_hz": Option(
            type="number",
            minimum=0.001,
            maximum=10_000,
            default=30,
            help="Messages that become due a second.",
        ),
        "packets": Option(
            type="integer", minimum=1, maximum=traffic.MOST_PARTS, default=8, help="Parts of each message."
        ),
        "payload_bytes": Option(
            type="integer",
            minimum=1,
            maximum=1400,
            default=1000,
            help="Bytes of a part; the last may be less.",
        ),
        "duration_s": Option(
            type="number",
            minimum=0.001,
            maximum=LONGEST_S,
            default=25,
            help="Messages become due for so long; without it, all of a trace.",
        ),
        "trace": Option(
            type="string",
            default="",
            help="traces/NAME.json beside the design: the messages, in the place of rate_hz and packets.",
        ),
        "direction": Option(
            type="string", choices=["down", "up"], default="down", help="From the server, or from the client."
        ),
        "delivery": Option(
            type="string",
            choices=["datagram", "deadline", "stream", "reliable"],
            default="datagram",
            help="A DATAGRAM frame a part, a stream a message with a deadline or without, or one for all.",
        ),
        "deadline_ms": Option(
            type="number",
            minimum=1,
            maximum=3_600_000,
            default=100,
            help="With delivery deadline: a message's stream is reset when it was due so long ago.",
        ),
        "playout_ms": Option(
            type="number",
            minimum=0,
            maximum=3_600_000,
            default=USUAL_PLAYOUT_MS,
            help="A list: on_time_ratio_…ms is the share of messages whole by then, the first compared.",
        ),
    }
    trace_file = Trace
    stored_as = "timetable"
    replaced = ("rate_hz", "packets")
    usual_playouts_ms = (USUAL_PLAYOUT_MS,)
    measuring: ClassVar = noted
    judging: ClassVar = possible
    series: ClassVar = {SERIES: 64 << 20}
    sample: ClassVar = {
        "name": name,
        "direction": "down",
        "delivery": "datagram",
        "deadline_ms": 100.0,
        "part_bytes": 1000,
        "timetable": [[0, SAMPLE_BYTES // 2], [20_000, SAMPLE_BYTES // 2]],
    }
    compared: ClassVar[str] = f"messages.on_time_ratio_{USUAL_PLAYOUT_MS:g}ms"

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:
        """Refuse parameters that do not fit. Absent ones have the values of the thesis'
        traffic."""
        super().check(choices, labels, where)
        if not choices.get("trace"):
            self._check_regular(choices, where)

    def reads(self, parameter: str, choices: Mapping[str, Any]) -> bool:
        """A deadline is read with that delivery alone."""
        return parameter != "deadline_ms" or self.with_defaults(choices)["delivery"] == "deadline"

    def _check_regular(self, choices: Mapping[str, Any], where: str) -> None:
        values = self.with_defaults(choices)
        # Counted before it is made: a rate and a duration may ask for more than there is memory.
        messages = traffic.count(values["rate_hz"], values["duration_s"])
        size_bytes = values["packets"] * values["payload_bytes"]
        problem = ""
        if messages > traffic.MOST_MESSAGES:
            problem = f"has {messages} messages; there may be {traffic.MOST_MESSAGES}"
        elif messages * values["packets"] > traffic.MOST_PARTS_IN_ALL:
            problem = (
                f"has {messages * values['packets']} parts in all; {traffic.MOST_PARTS_IN_ALL} are the most"
            )
        elif size_bytes > traffic.LARGEST_MESSAGE_BYTES:
            problem = f"has messages of {size_bytes} bytes; {traffic.LARGEST_MESSAGE_BYTES} are the most"
        if problem:
            raise Refusal(
                f"{where}: workload {self.name}: rate_hz = {values['rate_hz']:g},"
                f" packets = {values['packets']}, duration_s = {values['duration_s']:g}: {problem}"
            )

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        values = self.with_defaults(choices)
        timetable = self._timetable(choices, values, around)
        last_s = timetable[-1][0] / 1e6
        if last_s >= around.timeout_s:
            raise Refusal(
                f"workload {self.name}: its last message is due after {last_s:g} s,"
                f" and timeout_s = {around.timeout_s:g}: it must be more"
            )
        workload = {
            "name": self.asked_for,
            "direction": values["direction"],
            "delivery": values["delivery"],
            "deadline_ms": float(values["deadline_ms"]),
            "part_bytes": values["payload_bytes"],
            "timetable": timetable,
        }
        playouts = sorted({USUAL_PLAYOUT_MS, *map(float, self.playouts(choices))})
        return [Transfer(around.variant, workload, self.demand_of(workload), tuple(playouts))]

    def _timetable(
        self, choices: Mapping[str, Any], values: Mapping[str, Any], around: Surroundings
    ) -> Timetable:
        timetable = self.from_trace(choices, around)
        if timetable is None:
            return traffic.regular(
                values["rate_hz"], values["packets"] * values["payload_bytes"], values["duration_s"]
            )
        where = f"workload {self.name}: trace = {values['trace']!r}"
        if problem := traffic.problem_of(timetable, values["payload_bytes"]):
            raise Refusal(f"{where}, payload_bytes = {values['payload_bytes']}: {problem}")
        return timetable

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:
        return self.demand_of_rows(workload, workload["timetable"], workload["delivery"] not in WHOLE)
