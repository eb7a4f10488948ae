"""Virtual beside emulated: what agrees, what differs, and what nobody can tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from results.analysis import agreement
from results.analysis.agreement import HANDSHAKE, TIME, Agreement, Comparison
from results.store.database import Database
from results.store.records import (
    CampaignInfo,
    NewCampaign,
    State,
    TrialKey,
    TrialRecord,
    Variant,
    VerdictLog,
    Workload,
)

OFF, XOR = "off", "xor"
POINTS = 8
Ended = tuple[State, float, float]
"""State, DCT and handshake, in s."""
Run = Callable[[TrialKey], Ended]


def as_it_is(key: TrialKey) -> Ended:
    """A trial that takes longer at each point, and with XOR a little less long."""
    return "ok", (0.3 + 0.01 * key.point) * (0.9 if key.variant == XOR else 1), 0.11


def times(factor: float, handshake: float = 1.0, variant: str = "") -> Run:
    """Each trial takes `factor` times as long, of one variant or of all."""

    def ended(key: TrialKey) -> Ended:
        state, dct_s, handshake_s = as_it_is(key)
        is_meant = variant in ("", key.variant)
        return state, dct_s * (factor if is_meant else 1), handshake_s * handshake

    return ended


def but(state: State, variant: str = OFF, point: int = 0) -> Run:
    """As it is, but for one trial, which ends in another state."""
    return lambda key: (
        (state, *as_it_is(key)[1:]) if (key.variant, key.point) == (variant, point) else as_it_is(key)
    )


class Laboratory:
    """A database with a campaign in virtual time, and a sample of it that was emulated."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def compare(
        self,
        virtual: Run = as_it_is,
        emulated: Run = as_it_is,
        *,
        points: int = POINTS,
        size_bytes: int = 10_000,
        owd_ms: float = 50,
        bitmaps: tuple[bytes, bytes] = (b"\x01", b"\x01"),
        planned: int | None = None,
    ) -> Agreement:
        trials = 2 * points
        of_sample = {"campaign": "x", "share": 0.5, "trials": trials if planned is None else planned}
        campaigns = []
        for name, provenance, run, bitmap in (
            ("x", {"engine": "virtual"}, virtual, bitmaps[0]),
            ("x-crosscheck", {"engine": "local", "crosscheck": of_sample}, emulated, bitmaps[1]),
        ):
            campaign = self._campaign(name, provenance, points, size_bytes)
            campaigns.append(campaign)
            for point in range(points):
                for variant in (OFF, XOR):
                    key = TrialKey(variant, f"download-{size_bytes}", point, 0)
                    self.database.record(campaign.id, record(key, run(key), size_bytes, owd_ms, bitmap))
        self.database.start(campaigns[1].id, "ada", campaigns[1].provenance)
        found = agreement.of_campaign(self.database, campaigns[0])
        assert found is not None
        return found

    def _campaign(self, name: str, provenance: Any, points: int, size_bytes: int) -> CampaignInfo:
        parameters = {"size_bytes": size_bytes}
        return self.database.create_campaign(
            NewCampaign(
                name=name,
                title="x",
                design_text="x",
                seed=1,
                repetitions=1,
                statistic="median",
                provenance=provenance,
                points=[{"loss.p": 0.01 * point} for point in range(points)],
                variants=[
                    Variant(label=label, implementation="rquic", options={}, baseline=label == OFF)
                    for label in (OFF, XOR)
                ],
                workloads=[Workload(label=f"download-{size_bytes}", name="download", parameters=parameters)],
            )
        )


def record(key: TrialKey, ended: Ended, size_bytes: int, owd_ms: float, bitmap: bytes) -> TrialRecord:
    state, dct_s, handshake_s = ended
    measured = {"client": {"dct_s": dct_s, "handshake_s": handshake_s}} if state == "ok" else {}
    direction = {"owd_ms": owd_ms}
    return TrialRecord(
        key,
        state,
        "",
        "2026-01-01T00:00:00Z",
        1.0,
        metrics=measured,
        verdicts=[VerdictLog("internet", "down", 8, bitmap[0].bit_count(), bitmap)],
        task={
            "links": {"internet": {"settings": {"up": direction, "down": direction}}},
            "pairs": [{"demand": {"up_bytes": 0, "down_bytes": size_bytes}}],
        },
    )


@pytest.fixture
def compare(tmp_path: Path) -> Iterator[Callable[..., Agreement]]:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        yield Laboratory(database).compare


def one(found: Agreement, variant: str, metric: str = "client.dct_s", *, ratio: bool = False) -> Comparison:
    (comparison,) = [
        each
        for each in found.comparisons
        if (each.variant, each.metric, each.baseline is not None) == (variant, metric, ratio)
    ]
    return comparison


def test_what_is_equal_agrees_though_its_intervals_have_no_width(compare: Callable[..., Agreement]) -> None:
    found = compare()
    assert found.verdict == "agrees"
    assert {comparison.interval for comparison in found.comparisons} == {(0.0, 0.0)}
    assert {comparison.n for comparison in found.comparisons} == {POINTS}


def test_a_shift_that_a_test_of_equality_would_find_is_within_the_tolerance(
    compare: Callable[..., Agreement],
) -> None:
    found = compare(virtual=times(0.999))
    assert found.verdict == "agrees"
    low, high = one(found, OFF).interval
    assert low <= high < 0


@pytest.mark.parametrize(("factor", "where"), [(0.8, "below"), (1.2, "above")])
def test_a_shift_beyond_the_tolerance_differs(
    compare: Callable[..., Agreement], factor: float, where: str
) -> None:
    found = compare(virtual=times(factor))
    dct = one(found, OFF)
    assert (found.verdict, dct.verdict) == ("differs", "differs")
    assert dct.quantiles[0.5] == pytest.approx(factor - 1)
    assert (dct.interval[1] < dct.tolerance[0]) if where == "below" else (dct.interval[0] > dct.tolerance[1])
    assert one(found, XOR, ratio=True).verdict == "agrees"  # both were as much shorter, or longer


def test_an_interval_on_an_end_of_the_tolerance_cannot_tell(compare: Callable[..., Agreement]) -> None:
    def spread(key: TrialKey) -> Ended:
        return times(0.8 if key.point % 2 else 1.0)(key)

    assert one(compare(virtual=spread), OFF).verdict == "cannot tell"


def test_too_few_trials_cannot_tell(compare: Callable[..., Agreement]) -> None:
    found = compare(points=5)
    assert found.verdict == "cannot tell"
    assert found.count("cannot tell") == len(found.comparisons)
    assert all(math.isnan(comparison.interval[0]) for comparison in found.comparisons)


def test_it_says_what_would_tell_more(compare: Callable[..., Agreement]) -> None:
    found = compare(points=5)
    assert agreement.sentences(replace(found, share=0.5))[-1].startswith("A greater share would tell more")
    whole = agreement.sentences(replace(found, share=1.0))[-1]
    assert whole.startswith("A design of more repetitions would tell more")


@pytest.mark.parametrize(("size_bytes", "verdict"), [(10_000, "differs"), (10_001, "agrees")])
def test_a_ratio_has_one_percent_up_to_10_kb_and_four_above(
    compare: Callable[..., Agreement], size_bytes: int, verdict: str
) -> None:
    found = compare(virtual=times(0.98, variant=XOR), size_bytes=size_bytes)
    assert one(found, XOR, ratio=True).verdict == verdict
    assert one(found, XOR).verdict == "agrees"


def test_a_time_may_be_shorter_by_the_processor_of_each_round_trip() -> None:
    """Measured: 0.90 to 1.00 at a round-trip time of 25 ms, and 0.97 to 1.00 at 100 ms."""
    for rtt_s, least in ((0.025, 0.90), (0.1, 0.97)):
        low, high = TIME.ends(np.array([rtt_s]))
        assert 1 + low == pytest.approx(least, abs=0.005)
        assert 0 <= high <= 0.01


@pytest.mark.parametrize(
    ("shorter_s", "verdict"), [(0.0005, "agrees"), (0.006, "agrees"), (0.007, "differs")]
)
def test_a_handshake_may_be_shorter_by_six_milliseconds(
    compare: Callable[..., Agreement], shorter_s: float, verdict: str
) -> None:
    found = compare(virtual=times(1, handshake=(0.11 - shorter_s + 1e-9) / 0.11))
    assert one(found, OFF, "client.handshake_s").verdict == verdict
    assert HANDSHAKE.ends(np.array([0.11]))[0] == pytest.approx(-0.006 / 0.11)


def test_other_losses_differ_however_equal_the_times_are(compare: Callable[..., Agreement]) -> None:
    found = compare(bitmaps=(b"\x01", b"\x03"))
    assert found.verdict == "differs"
    assert len(found.other_losses) == found.pairs == 2 * POINTS
    assert "Packets met other verdicts in" in " ".join(agreement.sentences(found))


def test_a_trial_that_one_got_through_and_the_other_did_not_differs(
    compare: Callable[..., Agreement],
) -> None:
    found = compare(virtual=but("failed"))
    assert found.verdict == "differs"
    assert [key.point for key in found.other_states] == [0]
    assert one(found, OFF).n == POINTS - 1


@pytest.mark.parametrize(
    ("virtual", "emulated", "reason"),
    [
        (as_it_is, but("invalid"), "emulated: invalid"),
        (but("invalid"), as_it_is, "virtual: invalid"),
        (but("timeout"), but("timeout"), "both: timeout"),
        (but("failed"), but("failed"), "both: failed"),
    ],
)
def test_what_says_nothing_is_left_out_and_counted(
    compare: Callable[..., Agreement], virtual: Run, emulated: Run, reason: str
) -> None:
    found = compare(virtual, emulated)
    assert (found.verdict, found.left_out, found.pairs) == ("agrees", {reason: 1}, 2 * POINTS - 1)
    assert (one(found, OFF).n, one(found, XOR).n) == (POINTS - 1, POINTS)
    assert one(found, XOR, ratio=True).n == POINTS - 1
    assert f"1 {reason}" in agreement.sentences(found)[1]


@pytest.mark.parametrize(("virtual", "end"), [(True, math.inf), (False, -1.0)])
def test_a_timeout_of_one_of_the_two_is_the_farthest(
    compare: Callable[..., Agreement], virtual: bool, end: float
) -> None:
    found = compare(but("timeout"), as_it_is) if virtual else compare(as_it_is, but("timeout"))
    dct = one(found, OFF)
    assert dct.quantiles[0.95 if virtual else 0.05] == end
    assert dct.n == POINTS
    assert found.verdict != "differs"  # one of eight: which of them times out may be chance


def test_trials_that_are_not_emulated_yet_are_counted(compare: Callable[..., Agreement]) -> None:
    assert compare(planned=100).left_out == {"not run": 100 - 2 * POINTS}


def test_a_campaign_without_a_sample_is_not_cross_checked(tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        laboratory = Laboratory(database)
        laboratory.compare()
        emulated = database.campaign("x-crosscheck")
        assert emulated is not None
        assert agreement.of_campaign(database, emulated) is None
    assert agreement.sentences(None)[0].startswith("not cross-checked")


def test_the_greatest_share_that_was_asked_for_counts(tmp_path: Path) -> None:
    with Database.open(str(tmp_path / "x.sqlite"), create=True) as database:
        assert Laboratory(database).compare().share == 0.5
        virtual, sample = (database.campaign(name) for name in ("x", "x-crosscheck"))
        assert virtual is not None and sample is not None
        more = {"crosscheck": {"campaign": "x", "share": 0.6, "trials": 20}}
        less = {"crosscheck": {"campaign": "x", "share": 0.1, "trials": 4}}
        for provenance in (more, less):
            database.start(sample.id, "ada", provenance)
        found = agreement.between(database, virtual, sample)
        assert (found.share, found.planned) == (0.6, 20)
