"""The workload `messages`: real-time traffic, messages that become due at given times, in one direction."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from fecbench.runners.options import Option
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import Task
from fecbench.runners.workloads import timed
from fecbench.runners.workloads.messages import noted, possible, traffic
from fecbench.runners.workloads.messages.noted import SERIES, WHOLE
from fecbench.runners.workloads.messages.traffic import Timetable
from fecbench.runners.workloads.workload import (
    SAMPLE_BYTES,
    Impossible,
    Measured,
    Surroundings,
    Transfer,
    Workload,
)

USUAL_PLAYOUT_MS = 100.0
"""The on-time ratio at this playout delay is always computed."""
OF_RATE = ("rate_hz", "packets")
"""Parameters that a trace replaces."""


class Messages(Workload):
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
            maximum=traffic.LONGEST_S,
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
    documents = "traces"
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

    def check(self, choices: Mapping[str, Any], labels: Collection[str], where: str) -> None:  # noqa: ARG002
        """Refuse parameters that do not fit. Absent ones have the values of the thesis'
        traffic."""
        playouts = _playouts(choices)
        self.check_values({name: value for name, value in choices.items() if name != "playout_ms"}, where)
        timed.check_playouts(playouts, self.parameters["playout_ms"], f"{where}: workload {self.name}")
        for parameter in OF_RATE if choices.get("trace") else ():
            if parameter in choices:
                raise Refusal(
                    f"{where}: workload {self.name}: trace = {choices['trace']!r} says sizes and times"
                    f" itself: leave out {parameter}"
                )
        if not choices.get("trace"):
            self._check_regular(choices, where)

    def reads(self, parameter: str, choices: Mapping[str, Any]) -> bool:
        """A deadline is read with that delivery alone."""
        return parameter != "deadline_ms" or self._with_defaults(choices)["delivery"] == "deadline"

    def compared_with(self, choices: Mapping[str, Any]) -> str:
        """The share of messages that are whole by the first playout delay."""
        return f"messages.on_time_ratio_{_playouts(choices)[0]:g}ms"

    def _check_regular(self, choices: Mapping[str, Any], where: str) -> None:
        values = self._with_defaults(choices)
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

    def _with_defaults(self, choices: Mapping[str, Any]) -> dict[str, Any]:
        return {name: option.default for name, option in self.parameters.items()} | dict(choices)

    def transfers(self, choices: Mapping[str, Any], around: Surroundings) -> list[Transfer]:
        values = self._with_defaults(choices)
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
        playouts = sorted({USUAL_PLAYOUT_MS, *map(float, _playouts(choices))})
        return [Transfer(around.variant, workload, self.demand_of(workload), tuple(playouts))]

    def _timetable(
        self, choices: Mapping[str, Any], values: Mapping[str, Any], around: Surroundings
    ) -> Timetable:
        if not values["trace"]:
            return traffic.regular(
                values["rate_hz"], values["packets"] * values["payload_bytes"], values["duration_s"]
            )
        timetable: Timetable = around.documents[values["trace"]]["timetable"]
        if "duration_s" in choices:
            timetable = [message for message in timetable if message[0] < 1e6 * choices["duration_s"]]
        where = f"workload {self.name}: trace = {values['trace']!r}"
        if not timetable:
            raise Refusal(f"{where}: no message is due before duration_s = {choices['duration_s']:g}")
        if problem := traffic.problem_of(timetable, values["payload_bytes"]):
            raise Refusal(f"{where}, payload_bytes = {values['payload_bytes']}: {problem}")
        return timetable

    def demand_of(self, workload: Mapping[str, Any]) -> Demand:
        """Return the demand: the last message is due at its time, and nobody knows earlier that no other
        follows.

        Content that may be lost need not arrive.
        """
        timetable = workload["timetable"]
        size_bytes = sum(message[1] for message in timetable)
        down = workload["direction"] == "down"
        return Demand(
            up_bytes=0 if down else size_bytes,
            down_bytes=size_bytes if down else 0,
            round_trips=1,
            pauses_s=timetable[-1][0] / 1e6,
            may_be_lost=workload["delivery"] not in WHOLE,
        )

    def document(self, choices: Mapping[str, Any], folders: Sequence[Path]) -> tuple[str, Path] | None:
        name = str(choices.get("trace", ""))
        return (name, traffic.path_of(name, folders)) if name else None

    def read_document(self, path: Path) -> dict[str, Any]:
        return traffic.stored(path)

    def measure(self, task: Task, outcome: Outcome) -> Measured:
        messages = noted.read(task, outcome)
        for problem in possible.problems(task, outcome, messages):
            raise Impossible(problem)
        pair, sent_bytes = task.pairs[0], possible.sent_bytes(task, outcome)
        _, receiver = timed.ends(pair)
        keeps_rows = SERIES in pair.end(receiver).series
        return Measured(
            metrics=noted.measure(messages, pair.playout_ms, sent_bytes),
            series={(receiver, SERIES): noted.rows(messages)} if keeps_rows else {},
        )


def _playouts(choices: Mapping[str, Any]) -> tuple[Any, ...]:
    delays = choices.get("playout_ms", USUAL_PLAYOUT_MS)
    return tuple(delays) if isinstance(delays, list | tuple) else (delays,)
