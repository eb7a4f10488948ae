"""The registry has every metric that is ever measured, with words and a unit for people."""

import math
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fecbench.errors import BadInput
from fecbench.results import metrics
from fecbench.results.metrics import ALL, DEFAULT, Metric, registry
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, Workload

Filled = Callable[..., tuple[Database, CampaignInfo]]

ROOT = Path(__file__).parents[2]

# The files in which our endpoints name what they report, and how they do.
SOURCES = {
    "quic-impls/rquic/internal/endpoint/endpoint.go": r'"([a-z_]+)":\s+(?:0|&|float64)|m\["([a-z_]+)"\] =',
    "quic-impls/rquic/internal/endpoint/client.go": r'metrics\["([a-z_]+)"\]',
    "quic-impls/rquic/internal/endpoint/page.go": r'metrics\["([a-z_]+)"\]',
    "quic-impls/noq-fec/src/endpoint.rs": r'\("([a-z_]+)",',
    "quic-impls/udp/src/endpoint.rs": r'metrics.insert\("([a-z_]+)",',
    "quic-impls/udp/src/session.rs": r'\("([a-z_]+)",',
}


def reported(source: str) -> Iterator[str]:
    for groups in re.findall(SOURCES[source], (ROOT / source).read_text()):
        yield groups if isinstance(groups, str) else next(filter(None, groups))


def test_every_metric_that_our_endpoints_report_is_registered() -> None:
    for source in SOURCES:
        names = set(reported(source))
        assert names & {"packets_sent", "dct_s", "first_object_s"}, "the pattern still finds what it should"
        assert names - {metric.name for metric in ALL} == set(), source


def test_every_metric_of_the_contract_is_registered_with_who_reports_it() -> None:
    page = (ROOT / "quic-impls/contract/metrics.md").read_text()
    table = page.partition("## Metrics")[2].partition("\n## ")[0]
    who = {"client": "client", "both": "client and server"}
    rows = re.findall(r"^\| (`.+?`) \| (client|both) \|", table, re.MULTILINE)
    contract = {name: who[by] for names, by in rows for name in re.findall("`(.+?)`", names)}
    assert len(contract) > 10
    registered = {metric.name: metric.by for metric in ALL}
    assert {name: registered.get(name) for name in contract} == contract


def test_names_are_unique_and_every_metric_has_a_meaning_in_a_sentence_and_words() -> None:
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)
    for metric in ALL:
        assert metric.meaning[0].isupper() or metric.meaning.startswith("rQUIC"), metric.name
        assert metric.meaning.endswith("."), metric.name
        assert metric.words, metric.name


def test_the_unit_of_a_metric_is_the_one_that_its_name_ends_with() -> None:
    for metric in ALL:
        assert metrics.unit_of(metric.name) in ("", metric.unit), metric.name  # type: ignore[attr-defined]


COLUMNS: list[tuple[str, str]] = [
    ("client.dct_s", "dct_s"),
    ("background_server.packets_lost", "packets_lost"),
    ("competition.foreground_mbps", "competition.foreground_mbps"),
    ("stalled_s", "stalled_s"),
    ("internet.up.lost", "LINK.DIRECTION.lost"),
    ("backbone-2.down.lateness_max_us", "LINK.DIRECTION.lateness_max_us"),
]


def test_a_column_of_a_frame_has_the_metric_of_its_name() -> None:
    for name, registered in COLUMNS:
        (entry,) = (metric for metric in ALL if metric.name == registered)
        metric_of_column = metrics.of(name)
        assert metric_of_column.name == name
        assert (
            metric_of_column.unit,
            metric_of_column.meaning,
            metric_of_column.better,
            metric_of_column.by,
        ) == (*(entry.unit, entry.meaning, entry.better, entry.by),)


def test_a_metric_that_nobody_registered_has_the_unit_of_its_name_and_no_direction() -> None:
    for name in ("client.startup_ms", "lost", "nobody.dct_s", "a.b.c.lost", "client.a.lost"):
        metric = metrics.of(name)
        assert metric == Metric(name, metrics.unit_of(name), "", None, None)  # type: ignore[attr-defined]


NAMED: list[tuple[str, str, str, str]] = [
    ("client.dct_s", "download completion time (s)", "the DCT", "DCT ratio"),
    ("client.handshake_s", "handshake time (s)", "the handshake time", "ratio of the handshake time"),
    (
        "server.packets_lost",
        "number of packets declared lost (server)",
        "the number of packets declared lost (server)",
        "ratio of the number of packets declared lost (server)",
    ),
    (
        "background_server.smoothed_rtt_ms",
        "smoothed RTT (background server, ms)",
        "the smoothed RTT (background server)",
        "ratio of the smoothed RTT (background server)",
    ),
    ("server.jitter_ms", "server.jitter_ms (ms)", "server.jitter_ms", "ratio of server.jitter_ms"),
    ("client.score", "client.score", "client.score", "ratio of client.score"),
]


def test_a_metric_is_named_by_its_words_its_reporter_and_its_unit() -> None:
    for name, title, noun, ratio in NAMED:
        metric = metrics.of(name)
        assert (metrics.title(name), metric.noun, metric.ratio) == (title, noun, ratio), name


def test_an_axis_of_ratios_says_what_is_divided_by_what() -> None:
    assert metrics.of("client.dct_s").ratio_to("FEC off") == "DCT / DCT of FEC off"
    assert metrics.of("client.handshake_s").ratio_to("FEC off") == "handshake time / that of FEC off"
    assert metrics.of("client.score").ratio_to("FEC off") == "client.score / that of FEC off"


DIRECTIONS: list[tuple[str, str, str, float]] = [
    ("client.dct_s", "faster", "slower", math.inf),
    ("server.packets_lost", "better", "worse", math.inf),
    ("competition.foreground_mbps", "better", "worse", -math.inf),
    ("server.repair_sent", "lower", "higher", math.inf),
]


def test_better_and_worse_follow_the_direction_and_a_timeout_is_worse_than_any_value() -> None:
    for name, gain, harm, worst in DIRECTIONS:
        metric = metrics.of(name)
        assert metric.comparative == (gain, harm), name
        assert metric.worst == worst, name


def test_a_workload_that_names_no_metric_is_compared_by_the_default() -> None:
    described = Workload(label="page", name="page", parameters={})
    assert metrics.compared(described) == DEFAULT
    assert metrics.compared({**described, "metric": "client.first_object_s"}) == "client.first_object_s"


def test_a_metric_that_is_chosen_is_that_of_all_workloads(filled: Filled) -> None:
    _, campaign = filled({})
    assert set(metrics.of_workloads(campaign).values()) == {DEFAULT}
    choice = metrics.choose(campaign, "server.packets_lost")
    assert set(metrics.of_workloads(choice).values()) == {"server.packets_lost"}
    assert metrics.choose(choice, "") == choice


def test_a_campaign_is_parted_by_what_its_workloads_compare_in_the_order_of_the_design(
    filled: Filled,
) -> None:
    workloads = [
        Workload(label=f"w{i}", name="download", parameters={}, metric=name)
        for i, name in enumerate(["b", "a", "b"])
    ]
    _, campaign = filled({}, workloads=workloads)
    parts = metrics.by_metric(campaign)
    assert list(parts) == ["b", "a"]
    assert [workload["label"] for workload in parts["b"].workloads] == ["w0", "w2"]
    assert parts["a"].points == campaign.points


def test_a_series_begins_with_the_time_and_its_columns_end_with_their_units() -> None:
    for series in metrics.SERIES:
        assert series.columns[0].name == "t_s"
        for column in series.columns:
            assert metrics.unit_of(column.name) in ("", column.unit)  # type: ignore[attr-defined]
            assert metrics.column_of(series.name, column.name) == column
    assert metrics.column_of("mine", "gap_ms") == metrics.Column("gap_ms", "ms", "")


WRONG: list[tuple[str, str, str, str]] = [
    ("video", 'unit = "kbit/s"\n', "", "video.mean_kbps: unit: is missing"),
    ("video", 'unit = "kbit/s"', 'units = "kbit/s"', "video.mean_kbps: unit: is missing"),
    ("video", 'better = "more"', 'better = "most"', "better = 'most': must be 'less' or 'more'"),
    ("video", "is_share = true", 'is_share = "yes"', "is_share = 'yes': must be a valid boolean"),
    ("video", 'by = "harness"', "", "video.mean_kbps: by: is missing"),
    ("video", '["video.mean_kbps"]', "[[]", "video.toml: "),
    ("links", 'by = "link"', 'by = "link"\nwords = "lost"', "words: 'lost': must be a valid"),
    ("series", "[cwnd.columns]", "[cwnd.rows]", "cwnd: columns: is missing"),
    ("columns", "meaning = ", "means = ", "id: meaning: is missing"),
]


def test_a_table_that_is_wrong_is_refused_in_one_line(tmp_path: Path) -> None:
    for file, right, wrong, message in WRONG:
        shutil.copytree(registry.FOLDER, tmp_path, dirs_exist_ok=True)
        table = tmp_path / f"{file}.toml"
        assert right in table.read_text(), message
        table.write_text(table.read_text().replace(right, wrong))
        with pytest.raises(BadInput) as refusal:
            registry.read_metrics(tmp_path), registry.read_columns(tmp_path), registry.read_series(tmp_path)
        assert f"{file}.toml: " in str(refusal.value), message
        assert message in str(refusal.value), message
        assert "\n" not in str(refusal.value), message


def test_a_metric_of_a_path_is_that_of_any_path_under_its_own_name() -> None:
    first, tenth = metrics.of("client.path1.smoothed_rtt_ms"), metrics.of("server.path10.smoothed_rtt_ms")
    assert (first.name, first.unit, first.meaning) == ("client.path1.smoothed_rtt_ms", "ms", tenth.meaning)
    assert first.meaning
    for other in (
        "client.path0.packets_sent",
        "client.path1.dct_s",
        "path1.packets_sent",
        "client.pathx.packets_sent",
    ):
        assert not metrics.of(other).meaning
