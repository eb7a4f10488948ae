"""A decision: turn FEC on, leave it off, or change the congestion control first.

The run decides where it can, since it is of this network alone; the record, of networks like it, where the
run leaves it open. Where both leave it open, nothing can be said.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fecbench.results.advice import Advice, CongestionControl
from fecbench.runners.own_network.effects import Effect, Run
from fecbench.runners.own_network.own_design import CONTROLLERS, LABELS

Do = Literal["change the congestion control first", "turn FEC on", "leave FEC off", "nothing can be said"]
Verdict = Literal["shortens", "no gain", "open"]
Basis = Literal["run", "record", ""]


@dataclass(frozen=True)
class Decision:
    """A decision about FEC, and about the congestion control."""

    do: Do
    congestion_control: CongestionControl
    """The one to use: another one than today's where that is to be changed first."""
    controller: str | None
    """The one of FEC to use beside it; None: no FEC, or nothing can be said of it."""
    fec: Verdict
    """Effect of FEC beside that congestion control: `shortens` with `controller`."""
    basis: Basis
    """Basis of the decision about FEC. The run alone decides about the congestion control."""
    agrees: bool | None
    """Whether the record and the run say the same of FEC; None: one of them does not decide."""

    @property
    def use(self) -> dict[str, str] | None:
        """Options of noq-fec; None: nothing can be said."""
        if self.fec == "open":
            return None
        if self.controller is None:
            return {"scheme": "none"}
        return {"scheme": "rlc", "controller": self.controller}

    def document(self) -> dict[str, Any]:
        return asdict(self)


def decided(
    run: Run | None, records: Mapping[CongestionControl, Advice], today: CongestionControl, margin: float
) -> Decision:
    """Return the decision beside the congestion control that is used today.

    `records`: the advice of the record beside each congestion control; `margin`: differences below it are
    none, as a share.
    """
    control = today
    if run is not None:
        for other in LABELS:
            if other != today and run.congestion_control[other].ratio.high < 1 / (1 + margin):
                control = other
    of_record, recorded = _of_record(records[control])
    of_run, ran = ("open", None) if run is None else _of_run(run, control, margin)
    agrees = None if "open" in (of_run, of_record) else of_run == of_record
    fec, controller, basis = of_record, recorded, "record"
    if of_run != "open":
        fec, controller, basis = of_run, ran, "run"
    if fec == "open":
        basis = ""
    do: Do = "nothing can be said"
    if control != today:
        do = "change the congestion control first"
    elif fec != "open":
        do = "turn FEC on" if fec == "shortens" else "leave FEC off"
    return Decision(do, control, controller, fec, basis, agrees)  # type: ignore[arg-type]


def _of_record(advice: Advice) -> tuple[Verdict, str | None]:
    if advice.answer == "nothing" or advice.use is None:
        return "open", None
    if advice.answer == "none":
        return "no gain", None
    return "shortens", advice.use["controller"]


def _of_run(run: Run, control: CongestionControl, margin: float) -> tuple[Verdict, str | None]:
    """The first controller that shortens downloads, unless another surely shortens them more."""
    verdicts = {name: verdict(run.fec[control, name], margin) for name in CONTROLLERS}
    best: str | None = None
    for name in CONTROLLERS:
        if verdicts[name] == "shortens" and (
            best is None or run.fec[control, name].ratio.high < run.fec[control, best].ratio.low
        ):
            best = name
    if best is not None:
        return "shortens", best
    return ("no gain", None) if all(one == "no gain" for one in verdicts.values()) else ("open", None)


def verdict(effect: Effect, margin: float) -> Verdict:
    """Return what a controller does.

    It shortens downloads if their mean is surely shorter, and it or the 95th percentile is surely shorter
    and by more than the margin; the percentile must not be surely longer. It has no gain where neither is
    shorter by more than the margin.
    """
    least = 1 / (1 + margin)
    tail = effect.tail_ratio
    harms_tail = tail is not None and tail.low > 1 + margin
    helps_tail = tail is not None and tail.high < 1 and tail.value < least
    if effect.ratio.high < 1 and (effect.ratio.value < least or helps_tail) and not harms_tail:
        return "shortens"
    has_no_gain = effect.ratio.low >= least and (tail is None or tail.low >= least)
    return "no gain" if has_no_gain or effect.ratio.low > 1 else "open"
