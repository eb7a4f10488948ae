"""The rule for the value of a trial: a variant that does not get through is worse than all that do."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from fecbench.results import figures, metrics
from fecbench.results.analysis import outcomes
from fecbench.results.analysis.keeping import kept
from fecbench.results.analysis.summary import summary, whole_groups
from fecbench.results.report.medians import as_pairs_have_them, medians_of
from fecbench.results.store.database import Database
from fecbench.results.store.records import STATES, CampaignInfo, TrialKey, Workload
from tests.results.analysis.outcomes import KEYS, OFF, XOR, frame_with

Filled = Callable[..., tuple[Database, CampaignInfo]]
LESS, MORE, SHARE = metrics.DEFAULT, "competition.foreground_mbps", "messages.on_time_ratio_100ms"
P95, PLACES = "messages.latency_p95_ms", [TrialKey(OFF, "download-10000", 0, n) for n in range(3)]


def test_failed_and_timed_out_are_the_worst_and_what_nobody_vouches_for_is_nothing() -> None:
    """Such a trial may have measured something before it ended."""
    for name in (LESS, MORE, P95):
        keys = KEYS[: len(STATES)]
        frame = frame_with({key: (state, 5.0) for key, state in zip(keys, STATES, strict=True)}, name)
        result = dict(zip(frame["state"], outcomes.values(frame, metrics.of(name)), strict=True))
        worst = -math.inf if name == MORE else math.inf
        assert (result["ok"], result["failed"], result["timeout"]) == (5.0, worst, worst), name
        assert np.isnan([result["invalid"], result["unsupported"]]).all(), name
        assert set(outcomes.COUNTED) == {"ok", "failed", "timeout"}, name


def test_an_absent_value_of_another_metric_is_no_worst() -> None:
    frame = frame_with({PLACES[0]: ("ok", math.nan), PLACES[1]: ("ok", 5.0)})
    assert outcomes.values(frame, metrics.of(LESS)).isna().tolist() == [True, False]


def test_a_share_is_0_at_worst_and_an_ok_share_is_itself() -> None:
    frame = frame_with(
        dict(zip(PLACES, [("failed", math.nan), ("ok", 0.25), ("invalid", 0.5)], strict=True)), SHARE
    )
    np.testing.assert_equal(outcomes.shares(frame, metrics.of(SHARE)).to_numpy(), [0, 0.25, math.nan])


def test_what_is_lacking_is_counted_by_the_variant_among_those_that_count() -> None:
    states = dict.fromkeys(KEYS, "ok") | {KEYS[0]: "failed", KEYS[1]: "timeout", KEYS[2]: "invalid"}
    frame = frame_with({key: (state, 1.0) for key, state in states.items()})
    assert outcomes.lacking(frame) == f"failed or timed out: {OFF} 2 of 11"
    assert outcomes.lacking(frame[frame["state"] == "ok"]) == ""


def test_boxes_say_how_many_of_which_variant_they_lack(filled: Filled) -> None:
    _, campaign = filled({})
    states = dict.fromkeys(KEYS, "ok") | {
        key: "failed" for key in KEYS if key.variant == XOR and not key.repetition
    }
    frame = frame_with({key: (state, 1.0) for key, state in states.items()})
    printed = " ".join(" ".join(text.get_text() for text in figures.boxes(frame, campaign).texts).split())
    assert f"in no box, and may decide: failed or timed out: {XOR} 4 of 12" in printed
    assert int(whole_groups(frame, campaign).sum()) == 16
    assert int(whole_groups(frame, campaign, with_worst=True).sum()) == 24


def test_what_a_neighbour_got_is_its_value_whatever_became_of_the_measured_transfer() -> None:
    """A transfer that times out beside it does not give it an infinite rate."""
    frame = pd.DataFrame({"state": ["ok", "timeout", "failed", "failed", "invalid"], "workload": "it"})
    for name in ("competition.background_mbps", "competition.taken_bytes"):
        measured = frame.assign(**{name: [1.0, 2.0, 3.0, math.nan, 5.0]})
        assert outcomes.values(measured, metrics.of(name)).tolist()[:3] == [1, 2, 3]
        assert outcomes.values(measured, metrics.of(name))[3:].isna().all()
        assert not outcomes.lacking(measured.assign(variant=OFF), metrics.of(name))


def test_a_percentile_that_is_absent_since_too_much_was_lost_counts_in_medians_and_is_told(
    filled: Filled,
) -> None:
    _, campaign = filled({}, workloads=[Workload(label="it", name="messages", parameters={}, metric=SHARE)])
    frame = of_twenty(lambda variant, n: math.nan if (variant, n > 8) == (XOR, True) else 5.0, P95, "it")
    frame = frame.assign(**{SHARE: 0.5})
    (medians,) = medians_of(frame, campaign, summary(frame, campaign))
    assert medians.table.loc[P95].to_dict() == {OFF: 5.0, XOR: math.inf}
    printed = " ".join(text.get_text() for text in figures.boxes(frame, campaign, P95).texts)
    assert f"failed, timed out or lost too much: {XOR} 11 of 20" in " ".join(printed.split())


def of_twenty(values: Callable[[str, int], float], name: str, workload: str) -> pd.DataFrame:
    """Twenty repetitions at one point, of two variants."""
    rows = [(variant, workload, 0, n, "ok", values(variant, n)) for variant in (OFF, XOR) for n in range(20)]
    return pd.DataFrame(rows, columns=["variant", "workload", "point", "repetition", "state", name])


def test_the_95th_percentile_of_a_share_is_at_its_bad_end(filled: Filled) -> None:
    """19 of 20 repetitions are as good or better: the second worst."""
    _, campaign = filled({}, workloads=[Workload(label="it", name="messages", parameters={})])
    frame = of_twenty(lambda _, n: n / 20, SHARE, "it")
    of_p95 = replace(campaign, statistic="p95")
    assert kept(frame, of_p95, SHARE)["share"].tolist() == [0.05, 0.05]
    lines = [axes.lines[0].get_ydata() for axes in figures.on_time(frame, of_p95).axes]
    assert [list(line) for line in lines] == [[0.05]]


def test_the_table_of_metrics_has_the_ratio_of_the_95th_percentiles(filled: Filled) -> None:
    _, campaign = filled({})
    frame = of_twenty(lambda variant, n: (n + 1.0) * (3 if variant == XOR else 1), LESS, "download-10000")
    medians = pd.DataFrame({OFF: [10.0], XOR: [30.0]}, index=[LESS])
    result = as_pairs_have_them(medians, frame, replace(campaign, statistic="p95"))
    assert result.loc[LESS].to_dict() == {OFF: 10.0, XOR: 30.0}
