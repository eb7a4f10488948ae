"""`fecbench watch`: how a campaign goes on that another process runs, and what it says so far."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import campaigns_of, open_database
from fecbench.runners.commands.console.terminal import one_line, say
from fecbench.runners.commands.console.terminal_tables import console, fitted, is_narrow, print_table

if TYPE_CHECKING:
    from fecbench.results.analysis.standing import Standing

QUIET_S = 30.0
"""Longest silence of all harnesses: the beat of a start goes up every 10 s."""
WINDOW_S = 60.0
"""Window of the rate."""
NEXT_PART_S = 15.0
"""Longest wait for the next part of a hunt: it chooses networks between two of them."""
_PART_OF_HUNT = re.compile(r"(hunt-.+-[0-9a-f]{8}-)\d\d-.+")
_MOST_CAUSES = 5
_PAUSE = 4  # times as long as reading took: the writers of the database have most of the time


def watch(
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="How often to look, at most.")
    ] = 2.0,
    as_json: arguments.Json = False,
) -> int:
    """Show how a campaign goes on, by default the newest: trials, rate, time left, and the answer so far.

    It ends with the campaign, or with what its newest start was to run of it (fecbench run --filter): with 0,
    or with 1 when some trials are not ok or nobody runs the rest. The parts of a hunt are shown in turn.
    --json prints how it stands now, and ends.
    """
    with open_database(db) as database:
        name = campaigns_of(database, campaign, samples=True)[-1].name
    if as_json:
        print_document(document(_look(db, name)))
        return 0
    part: str | None = name
    while part is not None:
        standing = _follow(db, part, every)
        following = _next_part(db, part, every) if standing.has_ended else None
        if standing.has_ended and following is None and _PART_OF_HUNT.fullmatch(part):
            say(f"no further part within {NEXT_PART_S:.0f} s: the hunt is over, or still chooses networks")
        part = following
    if not standing.has_ended:
        say(
            f"nobody runs it: no sign of life for {QUIET_S:.0f} s;"
            f" {counted(standing.planned - standing.done, 'trial', 'is/are')} left"
        )
    return 0 if standing.has_ended and set(standing.states) <= {"ok"} else 1


def _follow(db: str, name: str, every_s: float) -> Standing:
    """Show a campaign until it has ended, or nobody seems to run it; return its last standing."""
    if _PART_OF_HUNT.fullmatch(name):
        say(f"part {name}")
    pace = Pace()
    with _screen() as show:
        for standing in _looks(lambda: _look(db, name), pace, every_s):
            show(standing, pace)
    return standing


def _next_part(db: str, name: str, every_s: float) -> str | None:
    """Return the part of a hunt that follows this one; None for any other campaign, and for the last part."""
    from fecbench.results.store.database import Database

    part = _PART_OF_HUNT.fullmatch(name)
    if part is None:
        return None
    ends_at_s = time.monotonic() + NEXT_PART_S
    while True:
        with Database.open(db) as database:
            parts = [info.name for info in database.campaigns() if info.name.startswith(part[1])]
        if following := parts[parts.index(name) + 1 :]:
            return following[0]
        if time.monotonic() >= ends_at_s:
            return None
        time.sleep(every_s)


def _look(db: str, name: str) -> Standing:
    """Return the standing. The database is opened anew, because the campaign may have changed."""
    from fecbench.results.analysis.standing import standing
    from fecbench.results.store.database import Database

    with Database.open(db) as database:
        return standing(database, campaigns_of(database, name, samples=True)[-1])


class Pace:
    """The rate at which trials end, and for how long nobody has shown a sign of life."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._pulse: tuple[int, ...] | None = None
        self._alive_at_s = 0.0
        self.quiet_s = 0.0

    def saw(self, now_s: float, standing: Standing) -> None:
        """Record the standing of the campaign at this moment."""
        if standing.pulse != self._pulse:
            self._pulse, self._alive_at_s = standing.pulse, now_s
        self.quiet_s = now_s - self._alive_at_s
        self._seen.append((now_s, standing.done))
        while len(self._seen) > 2 and now_s - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()

    @property
    def per_s(self) -> float | None:
        """Trials a second; None before two looks."""
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None


def _looks(look: Callable[[], Standing], pace: Pace, every_s: float) -> Iterator[Standing]:
    """Look until the campaign has ended, or nobody seems to run it."""
    while True:
        begun_s = time.monotonic()
        standing = look()
        now_s = time.monotonic()
        pace.saw(now_s, standing)
        yield standing
        if standing.has_ended or pace.quiet_s >= QUIET_S:
            return
        time.sleep(max(every_s, _PAUSE * (now_s - begun_s)))


@contextmanager
def _screen() -> Iterator[Callable[[Standing, Pace], None]]:
    """Yield a function that shows a standing: in place on a terminal.

    Elsewhere each change is a line, and the last standing has its table.
    """
    from fecbench.results.analysis import deciding
    from fecbench.runners.commands.console.campaign_summary import table_of_answers

    to = console()
    if to.is_terminal:
        with Live(console=to, auto_refresh=False) as live:
            yield lambda standing, pace: live.update(_drawn(standing, pace), refresh=True)
        return
    last_line: list[str] = [""]

    def tell(standing: Standing, pace: Pace) -> None:
        line = status(standing, pace)
        if line != last_line[0]:
            say(line)
            last_line[0] = line
        if standing.has_ended and standing.where:
            say(standing.where)
        if standing.has_ended and len(standing.answers):
            print_table(table_of_answers(standing.answers, standing.campaign))
            for sentence in deciding.of_averages(standing.campaign):
                say(sentence)

    yield tell


def _drawn(standing: Standing, pace: Pace) -> RenderableType:
    from fecbench.runners.commands.console.campaign_summary import table_of_answers

    lines: list[RenderableType] = [
        Text(one_line(f"campaign {standing.campaign.averaged_heading}: {standing.campaign.title}"))
    ]
    lines += [Text(one_line(standing.where))] if standing.where else []
    lines += [Text(status(standing, pace)), *(Text(one_line(line)) for line in causes(standing))]
    if len(standing.answers):
        table = table_of_answers(standing.answers, standing.campaign)
        narrow = is_narrow(console(), table)
        content, same = fitted(table, console().width) if narrow else (table, [])
        lines.append(content)
        lines += [Text(f"in all rows: {', '.join(same)}", style="dim")] if same else []
        if not standing.has_ended:
            lines.append(Text("It goes on: what is said here may change.", style="dim"))
    return Group(*lines)


def status(standing: Standing, pace: Pace) -> str:
    """Trials, rate and time left in a line."""
    from fecbench.runners.commands.console.campaign_summary import states_line
    from fecbench.runners.commands.console.time_left import duration

    line = states_line(standing.states, standing.planned)
    rate = pace.per_s
    if standing.has_ended or rate is None:
        return line
    left_s = (standing.planned - standing.done) / rate if rate else None
    per = f"{rate:.1f} a second" if rate >= 1 or not rate else f"{60 * rate:.1f} a minute"
    return f"{line}; {per}; left: {duration(left_s)}"


def causes(standing: Standing) -> list[str]:
    """Return why runs were invalid, the most frequent cause first."""
    lines = [f"invalid: {count} × {cause}" for cause, count in standing.invalid.items()]
    more = len(lines) - _MOST_CAUSES
    return lines[:_MOST_CAUSES] + ([f"invalid: {more} causes more"] if more > 0 else [])


def document(standing: Standing) -> dict[str, Any]:
    """Return the standing of a campaign as a JSON document."""
    from fecbench.results.analysis import comparison

    return {
        "campaign": standing.campaign.name,
        **({"where": standing.where} if standing.where else {}),
        "planned": standing.planned,
        "done": standing.done,
        "ended": standing.has_ended,
        "states": dict(sorted(standing.states.items())),
        "invalid": standing.invalid,
        "comparisons": comparison.document(standing.answers),
    }
