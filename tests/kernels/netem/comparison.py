"""Calibrates both backends of the emulated link and runs a design over each, then compares trial by trial.

Status 0 when the bounds of the calibration hold, each trial is ok with both, both lost the same packets,
each completion time over netem is within TOLERANCE of that over wire, and netem says plausibly how late its
frames left. One process does all, since a program starts slowly here.
"""

import sys
from pathlib import Path

from fecbench import designs
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey, TrialRecord
from fecbench.runners.calibration import experiments as calibration
from fecbench.runners.campaign import campaign
from fecbench.runners.campaign.programs import engine_for
from fecbench.runners.campaign.request import request
from fecbench.runners.campaign.share import Watcher
from fecbench.runners.implementations.finding import ours
from fecbench.runners.refusal import Refusal
from fecbench.runners.trial.judge import Judgement
from fecbench.topologies.backend import Backend
from tests.kernels.pairs import Pair, pairs

DESIGN = Path(__file__).parent / "comparison.toml"
FOLDER = Path("/run/scratch")

# Both are within 30 µs of the same link, so what is left is what endpoints make of that: two events in
# another order, such as a timer and a packet, put a frame more before the last byte. A frame takes 0.4 to
# 1 % of these downloads. A netem link that lets the first frame of a burst out at once is 1 to 7 % off.
TOLERANCE = 0.03


class Progress(Watcher):
    """Prints each trial as it ends."""

    def begun(self, campaign: str, planned: int, result: int) -> None:
        print(f"{campaign}: {planned - result} trials", flush=True)

    def ended(self, key: TrialKey, judgement: Judgement, completion_s: float, again: bool) -> None:
        outcome = f"{judgement.state} {judgement.reason}, {completion_s} s{', again' if again else ''}"
        print(f"  {key}: {outcome}", flush=True)


def run(backend: Backend) -> dict[TrialKey, TrialRecord]:
    """The trials of the design over one backend, whose calibration is printed first."""
    table = calibration.measure_briefly(backend)
    for line in table.measurements:
        print(f"{backend}: {line}")
    if not table.good:
        raise Refusal(f"{backend} does not hold its bounds")
    campaign_request = request(designs.load(DESIGN), ours(), name=backend, backend=backend, calibrate=False)
    engine = engine_for("local", campaign_request.experiment.implementations, campaign_request.jobs)
    with Database.open(f"{FOLDER}/{backend}.sqlite", create=True) as database:
        result = campaign.run(campaign_request, engine, database, Progress())
        return {trial.record.key: trial.record for trial in database.trials(result.id)}


def queue_drops(record: TrialRecord) -> int:
    """Frames that found the queue of a link full."""
    return sum(
        direction["queue_dropped"]
        for link in record.links.values()
        for direction in link["directions"].values()
    )


def compare(pair: Pair) -> bool:
    """Prints one line of the table; whether wire and netem agree about this trial."""
    key = pair.key
    if not pair.ok:
        print(f"{key.point:5}  {key.variant:10}  {' over wire, '.join(pair.states)} over netem  DIFFERS")
        return False
    wire_s, netem_s = pair.values("dct_s")
    ratio = netem_s / wire_s
    losses = pair.same_losses
    agree = losses and abs(ratio - 1) <= TOLERANCE
    lost = [str(sum(log.dropped for log in record.verdicts)) for record in pair.records]
    overflown = [str(queue_drops(record)) for record in pair.records]
    print(
        f"{key.point:5}  {key.variant:10}  {wire_s:8.4f}  {netem_s:8.4f}  {ratio:6.4f}  {'/'.join(lost):>5}"
        f"  {'/'.join(overflown):>5}  {'same' if losses else 'OTHER':8}  {'agree' if agree else 'DIFFERS'}"
    )
    return agree


def tells_lateness(record: TrialRecord) -> bool:
    """Prints how late frames left each link over netem; whether that is known, and the numbers agree."""
    plausible = record.checks["late_max_ms"] is not None
    for name, link in record.links.items():
        for direction, counted in link["directions"].items():
            lateness_us, late, late_sum_us = (counted[key] for key in ("lateness_us", "late", "late_sum_us"))
            where = f"{record.key.point:5}  {record.key.variant:10}  {name}/{direction}"
            print(f"{where}: {lateness_us}, {late} late for {late_sum_us}")
            plausible &= is_plausible(lateness_us, late, late_sum_us, link["late_bound_us"])
    return plausible


def is_plausible(
    lateness_us: dict[str, float] | None, late: int | None, late_sum_us: float | None, bound_us: int
) -> bool:
    """Whether the numbers of one direction, which had frames, are there and can be of the same frames."""
    if lateness_us is None or late is None or late_sum_us is None:
        return False
    quantiles = [lateness_us[name] for name in ("p50", "p99", "p999", "max")]
    most_us = quantiles[-1]
    # A clock to which frames are never late measures nothing.
    in_order = most_us > 0 and quantiles == sorted(quantiles)
    if most_us <= bound_us:
        return in_order and late == late_sum_us == 0
    return in_order and most_us <= late_sum_us <= late * most_us


def main() -> int:
    try:
        wire, netem = run("wire"), run("netem")
    except Refusal as refusal:
        print(f"comparison: {refusal}")
        return 1
    print(f"completion times in s; a ratio within {TOLERANCE:.0%} of 1 agrees")
    print("point  variant         wire     netem   ratio   lost  queue  verdicts")
    agreed = [compare(pair) for pair in pairs(wire, netem)]
    print("how late frames left netem, in µs")
    agreed += [tells_lateness(record) for record in netem.values()]
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
