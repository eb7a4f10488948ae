"""The answer of `advise` for a person: the decision, what it saves and costs, what it rests on."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File

from fecbench.quantities import counted
from fecbench.results.advice import Advice, Candidate, CongestionControl, Network
from fecbench.results.advice.prediction import HELD
from fecbench.results.advice.ranges import FAR
from fecbench.results.analysis.margins import percent
from fecbench.results.metrics.units import size as size_of
from fecbench.runners.own_network import Decision, Effect, Run
from fecbench.runners.own_network.effects import Number
from fecbench.runners.own_network.own_design import LABELS, NONE, PAIRS, label
from fecbench.runners.paths import LONGEST, Estimate, Path

SUCH = f"{100 * HELD:g} of 100 such networks"


@dataclass(frozen=True)
class Answer:
    """The parts of an answer."""

    network: Network
    path: Path
    files: tuple[File, ...]
    records: Mapping[CongestionControl, Advice]
    run: Run | None
    not_run: str
    """Reason why the network was not run; empty if it was, or with --no-run."""
    decision: Decision

    @property
    def advice(self) -> Advice:
        """Advice of the record, beside the congestion control of the decision."""
        return self.records[self.decision.congestion_control]

    @property
    def downloads(self) -> str:
        return f"downloads of {size_of(round(self.network.size_bytes))}"


def lines_of(answer: Answer) -> Iterator[str]:
    """Yield the lines of the answer."""
    if answer.run is None:
        yield from _by_record(answer)
    else:
        yield from _by_run(answer, answer.run)
    if answer.files or answer.path.notes:
        yield from _measured(answer)
    if answer.not_run:
        yield f"Not run: {answer.not_run}"
    yield from _would_change(answer)


# By the run


def _by_run(answer: Answer, run: Run) -> Iterator[str]:
    decision = answer.decision
    yield _headline(answer, run)
    if decision.do == "change the congestion control first":
        effect = run.congestion_control[decision.congestion_control]
        yield f"  {LABELS[decision.congestion_control]} in its place: {_saving(effect)}"
    if decision.controller is not None:
        effect = run.fec[decision.congestion_control, decision.controller]
        yield f"  {decision.controller}: {_saving(effect)}; {_more(effect)}."
    else:
        for (control, controller), effect in run.fec.items():
            if control == decision.congestion_control:
                yield f"  {controller}: {_saving(effect)}; {_more(effect)}."
    one = next(iter(run.fec.values()))
    without = run.means_ms[label(decision.congestion_control, NONE)]
    yield (
        f"Run: {counted(one.pairs, 'pair')} of each two variants in virtual time, in"
        f" {counted(one.networks, 'network')} within the"
        f" intervals; without FEC, {answer.downloads} take {_ms(without)} on average."
    )
    if run.end == "by time":
        yield (
            f"  {PAIRS} pairs were planned: the time was over before. More time or a faster machine may say"
            " otherwise."
        )
    elif one.pairs < PAIRS:
        yield f"  {PAIRS} pairs were planned: the others are invalid."
    if run.unfinished:
        unfinished = f"{run.unfinished:,} of {counted(run.trials, 'trial')} did not end"
        yield f"  {unfinished}: they count as long as they were waited for."
    yield _record_beside(answer)


def _headline(answer: Answer, run: Run) -> str:
    decision = answer.decision
    control = LABELS[decision.congestion_control]
    if decision.do == "change the congestion control first":
        effect = run.congestion_control[decision.congestion_control]
        then = {
            "shortens": f"then turn FEC on ({_options(decision)})",
            "no gain": "then leave FEC off",
            "open": "nothing can be said of FEC beside it",
        }[decision.fec]
        return (
            f"Change the congestion control first: with {control}, {answer.downloads} take"
            f" {_range(effect.ratio)} of the time; {then}."
        )
    if decision.fec == "open":
        return (
            f"Nothing can be said of {answer.downloads} beside {control}: the run does not decide whether FEC"
            " shortens them, and neither does the record."
        )
    if decision.fec == "no gain":
        return (
            f"Leave FEC off: beside {control}, it does not shorten {answer.downloads} by more than"
            f" {percent(answer.advice.margin)}."
        )
    assert decision.controller is not None
    effect = run.fec[decision.congestion_control, decision.controller]
    return (
        f"Turn FEC on, {_options(decision)}: beside {control}, {answer.downloads} take"
        f" {_range(effect.ratio)} of the time without it."
    )


def _options(decision: Decision) -> str:
    return ", ".join(f'{name} = "{value}"' for name, value in (decision.use or {}).items())


def _saving(effect: Effect) -> str:
    tail = effect.tail_saved_ms
    at_tail = "too few trials" if tail is None else _saved(tail)
    return (
        f"saves {_saved(effect.saved_ms)} on average, {_saved(effect.median_saved_ms)} at the median,"
        f" {at_tail} at the 95th percentile"
    )


def _saved(number: Number) -> str:
    digits = 0 if max(abs(number.low), abs(number.high)) >= 10 else 1
    # Zero is added, since −0 is printed with its sign.
    ends = (number.low, number.value, number.high)
    low, value, high = (f"{round(ms, digits) + 0:.{digits}f}" for ms in ends)
    return f"{value} ms ({low} to {high})"


def _more(effect: Effect) -> str:
    shares = (effect.more_bytes, *effect.more_bytes_interval)
    sign = 1 if effect.more_bytes >= 0 else -1
    value, *ends = (100 * sign * share for share in shares)
    low, high = sorted(ends)
    return f"{value:.2g} % ({low:.2g} to {high:.2g}) {'more' if sign > 0 else 'fewer'} bytes"


def _range(ratio: Number) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if value < 10_000 else f"{value / 1e3:.0f} s"


def _record_beside(answer: Answer) -> str:
    """Return what the record says beside the run, and which of them counts."""
    advice, decision = answer.advice, answer.decision
    where = f"{advice.networks} recorded networks like it"
    if advice.far:
        return "Record: nothing like this network was measured."
    if advice.answer == "nothing":
        says = f"Record: {where} do not decide whether FEC shortens them"
    elif advice.answer == "none":
        says = f"Record: in {where}, FEC does not shorten them"
    else:
        assert advice.prediction is not None and advice.use is not None
        says = (
            f"Record: in {where}, {advice.use['controller']} takes {_ends(*advice.prediction)} of the time"
            f" ({SUCH})"
        )
    if decision.agrees is None:
        return f"{says}."
    if decision.agrees:
        return f"{says}. The run says the same."
    return f"{says}. The run says otherwise, and counts: it is of your network."


# What was measured


def _measured(answer: Answer) -> Iterator[str]:
    path = answer.path
    names = " and ".join(file.name for file in answer.files)
    facts = []
    if path.packets:
        lasts = f" in {path.lasts_s:.3g} s" if path.lasts_s else ""
        facts.append(f"{counted(path.packets, 'packet')}{lasts}, {path.lost:,} lost")
    if path.rtt_ms is not None:
        facts.append(f"RTT {_estimate(path.rtt_ms, 'ms')}")
    if path.bandwidth_mbps is not None:
        facts.append(_estimate(path.bandwidth_mbps, "Mbit/s"))
    if path.loss is not None:
        facts.append(f"losses {_estimate(path.loss, '%', 100)}")
    if path.burst is not None:
        facts.append(f"{_estimate(path.burst, 'in a row')}")
    if path.queue_bdp is not None:
        facts.append(f"queue {_estimate(path.queue_bdp, 'BDP')}")
    source = f", {path.source}" if path.source else ""
    whence = f"Measured: {names} ({path.form}{source})" if names else "Given"
    yield f"{whence}: {'; '.join(facts)}."
    if path.is_lossless:
        yield f"  No loss was seen. The upper ends allow for bursts of {LONGEST:g} packets on average."
    if path.queue_losses:
        yield f"  {path.queue_losses} more were lost at a full queue: they are no losses of the path."
    if path.ends:
        lasts = "" if path.burst_s is None else f", after {_estimate(path.burst_s, 'ms', 1e3)}"
        yield f"  A burst ends by {'time' if path.ends == 'time' else 'packets'}{lasts}."
    yield from (f"  {note}" for note in path.notes)


def _estimate(estimate: Estimate, unit: str, factor: float = 1.0) -> str:
    value = f"{factor * estimate.value:.3g} {unit}"
    if estimate.is_exact:
        return value
    if not math.isfinite(estimate.high):
        return f"{factor * estimate.low:.3g} {unit} or more"
    return f"{value} ({factor * estimate.low:.3g} to {factor * estimate.high:.3g})"


def _would_change(answer: Answer) -> Iterator[str]:
    """Yield what could change the answer."""
    path, reasons = answer.path, list[str]()
    loss = path.loss
    if loss is not None and loss.high > 0 and not path.ends:
        reasons.append("bursts that time ends: FEC repairs fewer of them (docs/losses-of-time.md)")
    if path.bandwidth_mbps is not None and not math.isfinite(path.bandwidth_mbps.high):
        reasons.append("a faster path than the file shows (--bandwidth)")
    if path.queue_bdp is None:
        reasons.append("the queue's length, which is not known (--queue-bdp)")
    if answer.run is None:
        reasons.append("another congestion control: docs/how-much-fec.md, “BBRv3, or FEC?”")
    if reasons and answer.decision.do != "nothing can be said":
        yield f"It may change with {'; '.join(reasons)}."


# By the record alone


def _by_record(answer: Answer) -> Iterator[str]:
    advice = answer.advice
    yield _record_headline(answer.downloads, advice)
    for candidate in advice.candidates:
        yield from _prospects(candidate, advice.networks)
    for name, (low, high) in advice.between.items():
        ends = f"{_value(name, low)} and {_value(name, high)}"
        yield f"Believe this less: {name} is between what was measured: {ends}. Both sides were asked."
    believe = "" if advice.far else "Believe this less: "
    for name, (low, high) in advice.beyond.items():
        far = f", by more than a factor of {FAR:g}" if name in advice.far else ""
        ends = f"{_value(name, low)} to {_value(name, high)}"
        yield f"{believe}{name} is outside of what was measured, {ends}{far}."
    if answer.network.by_time and "burst" in advice.far:
        yield "Time ends a burst here, and a number of packets in what was measured (docs/losses-of-time.md)."
    if advice.answer == "nothing":
        instead = "" if answer.not_run else "this network (leave out --no-run), or "
        yield f"To know more, run {instead}a design of it: docs/write-a-design.md."


def _record_headline(downloads: str, advice: Advice) -> str:
    margin = percent(advice.margin)
    if advice.far:
        return f"Nothing can be said of {downloads}: nothing like this network was measured."
    if advice.use is None or advice.prediction is None:
        low = min(candidate.prediction[0] for candidate in advice.candidates)
        high = max(candidate.prediction[1] for candidate in advice.candidates)
        return (
            f"Nothing can be said of {downloads}: in networks like yours they take {_ends(low, high)} of the"
            " time without FEC, and what was measured does not tell which yours is."
        )
    options = ", ".join(f'{name} = "{value}"' for name, value in advice.use.items())
    if advice.answer == "none":
        return (
            f"Leave FEC off ({options}): in a network like yours, it does not shorten {downloads} by more"
            f" than {margin}."
        )
    return (
        f"Turn FEC on, {options}: in a network like yours, {downloads} take"
        f" {_ends(*advice.prediction)} of the time without it ({SUCH})."
    )


def _prospects(candidate: Candidate, networks: int) -> Iterator[str]:
    """Yield the effect of a controller in networks like this one: in most, on average, and surely."""
    yield f"  {candidate.controller}: {_ends(*candidate.prediction)} of the time ({SUCH})."
    low, high = candidate.interval
    sizes = " and ".join(map(size_of, candidate.sizes_bytes))
    margins = " and ".join(dict.fromkeys(map(percent, candidate.margins)))
    interpolated = f" Interpolated between {sizes}." if len(candidate.sizes_bytes) > 1 else ""
    yield (
        f"    The mean over the {networks} recorded networks most like yours is {candidate.ratio:.3f}"
        f" ({low:.3f} to {high:.3f}).{interpolated}"
    )
    yield (
        f"    At {sizes}, by more than {margins}: harms in"
        f" {candidate.harmed} of {candidate.decided} that are decided, {candidate.undecided} undecided;"
        f" helps in {candidate.helped}."
    )


def _ends(low: float, high: float) -> str:
    """The ends of an interval, rounded outwards, with the digits that its width allows."""
    digits = 2 if high - low >= 0.03 else 3
    scale = 10**digits
    low, high = math.floor(low * scale) / scale, math.ceil(high * scale) / scale
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _value(name: str, value: float) -> str:
    if name == "loss":
        return percent(value)
    return size_of(round(value)) if name == "size_bytes" else f"{value:.4g}"
