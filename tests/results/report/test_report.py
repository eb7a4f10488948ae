"""A report says what its database holds, whatever that is, and the same each time."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from fecbench.errors import BadInput
from fecbench.results import figures, papers
from fecbench.results.analysis import frames
from fecbench.results.analysis.intervals import FEWEST
from fecbench.results.figures import ratios as ratio_figures
from fecbench.results.figures.saving import SUFFIXES, Folder
from fecbench.results.papers.claim import Claim, PaperFigure
from fecbench.results.report.drawings import named
from fecbench.results.report.evidence import gather
from fecbench.results.report.finding_sentences import findings, headline
from fecbench.results.report.report import ReportPaths, report
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey, TrialRecord, Variant, Workload
from tests.results.pages import page_of

Make = Callable[..., TrialRecord]
Filled = Callable[..., tuple[Database, CampaignInfo]]

ROOT = Path(__file__).parents[3]
OFF, XOR = "rquic-off", "rquic-xor"
KEYS = [TrialKey(*key) for key in product((OFF, XOR), ("download-10000", "download-2000"), (0, 1), range(3))]


def dct_s(key: TrialKey) -> float:
    """XOR halves the DCT of 10 kB at point 0, and makes everything else a quarter slower."""
    base = 1.0 + key.point + 0.1 * key.repetition
    if key.variant == OFF:
        return base
    return base * (0.5 if (key.workload, key.point) == ("download-10000", 0) else 1.25)


ALL_OK = {key: ("ok", dct_s(key)) for key in KEYS}


class Page(HTMLParser):
    """The text of a page, its addresses, and whether its elements are closed in order."""

    VOID = ("meta", "img", "link")

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.source = source
        self.feed(self.source)
        assert self.open == []
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def files(paths: ReportPaths) -> list[Path]:
    return [paths.html, *paths.pngs, *paths.svgs, *paths.pdfs]


def digests(paths: ReportPaths) -> dict[str, str]:
    return {path.name: sha256(path) for path in files(paths)}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_report_is_one_page_that_needs_nothing_else_with_figures_and_the_same_bytes_each_time(
    filled: Filled, tmp_path: Path
) -> None:
    of_one = {key: outcome for key, outcome in ALL_OK.items() if key.workload == "download-2000"}
    size = Workload(label="download-2000", name="download", parameters={"size_bytes": 2000})
    database, campaign = filled(of_one, workloads=[size])
    paths = report(database, campaign, tmp_path / "new" / "folder", vectors=True)
    assert sorted(path.name for path in paths.html.parent.iterdir()) == sorted(p.name for p in files(paths))
    of_kind = {".png": paths.pngs, ".svg": paths.svgs, ".pdf": paths.pdfs}
    first = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    stems = [path.stem for path in paths.pngs]
    assert {"ratio", "dct", "points", "bars", "factors-download-2000", "cells-rquic-xor"} <= set(stems)
    for suffix, drawing in of_kind.items():
        assert [path.name for path in drawing] == [f"{stem}{suffix}" for stem in stems]
        assert all(path.read_bytes().startswith(first[suffix]) for path in drawing)
    page = Page(paths.html.read_text())
    assert page.tags.count("img") == len(stems)
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert "Too few networks for a rule: 2, and 30 are needed." in page.text

    again = (
        "import sys; from fecbench.results.store.database import Database\n"
        "from fecbench.results.report.report import report\n"
        "with Database.open(sys.argv[1]) as database:\n"
        "    report(database, database.campaigns()[0], sys.argv[2], vectors=True)"
    )
    folder = tmp_path / "again"
    environment = os.environ | {"PYTHONHASHSEED": "1"}  # ours is random
    command = [sys.executable, "-c", again, database.address, str(folder)]
    subprocess.run(command, env=environment, cwd=ROOT, check=True)
    assert {path.name: sha256(path) for path in folder.iterdir()} == digests(paths)


WORSE = "that counts as worse than any value; which of two is worse, nobody can tell."


def test_the_headline_says_how_many_trials_are_ok_and_where_fec_was_faster(filled: Filled) -> None:
    some = ALL_OK | {KEYS[0]: ("timeout", 9.0)}
    del some[KEYS[-1]]
    database, campaign = filled(some, repetitions=3)
    assert headline_of(database, campaign) == [
        "22 of 24 planned trials are ok (not ok: 1, not run: 1).",
        "rquic-xor against rquic-off, 10 kB: undecided in all 2 networks: too few repetitions;"
        " median DCT ratio 0.85 (no interval). 2 kB: undecided in all 2 networks: too few repetitions;"
        " median DCT ratio 1.25 (no interval)."
        " Of 12 planned pairs of “rquic-xor” and “rquic-off”, 11 have a ratio."
        f" “rquic-xor” alone failed or timed out in 0 pairs, “rquic-off” alone in 1, both in 0: {WORSE}",
    ]


def test_a_variant_that_timed_out_where_it_would_have_been_slower_is_not_said_to_be_faster_everywhere(
    filled: Filled,
) -> None:
    lost = {key for key in KEYS if key.variant == XOR and (key.workload, key.point) != ("download-10000", 0)}
    database, campaign = filled(
        {key: ("timeout" if key in lost else "ok", dct_s(key)) for key in KEYS if key.repetition < 2},
        repetitions=3,
    )
    message = (
        "rquic-xor against rquic-off, 10 kB: undecided in all 2 networks: too few repetitions;"
        " median DCT ratio ∞ (no interval). 2 kB: undecided in all 2 networks: too few repetitions;"
        " median DCT ratio ∞ (no interval)."
        " Of 12 planned pairs of “rquic-xor” and “rquic-off”, 8 have a ratio."
        f" “rquic-xor” alone failed or timed out in 6 pairs, “rquic-off” alone in 0, both in 0: {WORSE}"
    )
    assert headline_of(database, campaign)[1:] == [message]
    page = Page(page_of(database, campaign))
    assert message in page.text
    assert "workload ok / run 10 kB 2 / 4 2 kB 0 / 4 The same in all rows: variant: rquic-xor;" in page.text
    assert (
        "helps, harms: 0 (0); no difference: 0; undecided, networks: 2; median ratio [95 %]: ∞ (no interval)"
        in page.text
    )


def headline_of(database: Database, campaign: CampaignInfo) -> list[str]:
    frame = frames.trials(database, campaign)
    return headline(frame, campaign, findings(frame, campaign, ratio_figures.table(frame, campaign)))


def test_gain_and_harm_are_counted_where_repetitions_decide(filled: Filled) -> None:
    repeated = [
        TrialKey(variant, "download-2000", point, n)
        for variant, point, n in product((OFF, XOR), range(8), range(FEWEST))
    ]
    # Three points with gain, one with harm, one where it is the same, and three where it is now so, now so.
    factors = [0.5, 0.5, 0.5, 2.0, 1.01, *[None] * 3]
    outcomes = {
        key: ("ok", 1.0 if key.variant == OFF else factors[key.point] or (0.5, 2.0)[key.repetition % 2])
        for key in repeated
    }
    points = [{"owd_ms": n} for n in range(8)]
    database, campaign = filled(outcomes, repetitions=FEWEST, points=points)
    frame = frames.trials(database, campaign)
    result = findings(frame, campaign, ratio_figures.table(frame, campaign))
    row = result.query("variant == @XOR and workload == 'download-2000'").iloc[0]
    assert (row["helps"], row["harms"], row["equivalent"], row["undecided"]) == (3, 1, 1, 3)
    assert row["low"] <= row["median_ratio"] <= row["high"]
    # Six pairs say no more than p = 2 · 2⁻⁶: no four of eight points are discoveries at 5 %.
    assert (row["helps_discovered"], row["harms_discovered"]) == (0, 0)
    assert row["by_chance"] == pytest.approx(0.4)
    message = "helps in 3 of 8 networks by more than 2 %, harms in 1, no difference in 1"
    assert (
        f"rquic-xor against rquic-off, 2 kB: {message}, undecided in 3; median DCT ratio"
        in headline_of(database, campaign)[1]
    )
    assert result.query("variant == @OFF")["helps"].isna().all()


def test_every_trial_that_is_not_ok_is_listed_with_its_reason(filled: Filled, make: Make) -> None:
    database, campaign = filled({})
    reasons = [f"reason <{n}> & more" for n in range(12)]
    states = ["failed", "timeout", "unsupported", "invalid"]
    for n, reason in enumerate(reasons):
        database.record(campaign.id, make(n, state=states[n % 4], reason=reason))
    database.record(campaign.id, make(3, state="invalid", reason="late again"))
    database.record(campaign.id, make(20, reason="not to be shown"))
    page = Page(page_of(database, campaign))
    assert all(reason in page.text for reason in [*reasons, "late again"])
    before, _, replaced = page.text.partition("Runs that were replaced")
    assert reasons[3] not in before
    assert "late again" not in replaced
    assert "not to be shown" not in page.text
    assert "Runs that another attempt replaced: 1." in page.text


def test_a_page_shows_the_design_its_points_and_the_provenance_as_text(filled: Filled) -> None:
    design = 'title = "<script>alert(1)</script> & </pre>"\n'
    stack = {"folder": "quic-impls/stack", "declaration": "[options.never-shown]"}
    provenance = {
        "git": {"commit": "0123abc", "changed": False},
        "kernel": None,
        "implementations": {"stack": stack},
    }
    page = Page(page_of(*filled({}, design_text=design, provenance=provenance)))
    assert design.strip() in page.text
    assert "bandwidth (Mbit/s)" in page.text
    assert "0123abc" in page.text
    assert "git.commit" in page.text
    assert "fecbench run campaign-0.toml --db campaign-0.sqlite --campaign campaign-0\n" in page.source
    assert "quic-impls/stack" in page.text
    assert "never-shown" not in page.text


def test_the_commands_that_repeat_a_campaign_name_what_was_run_how_and_what_may_differ(
    filled: Filled,
) -> None:
    pages = {"photo-site": {"sha256": "ab" * 32, "graph": {"objects": ["not shown"]}}}
    revision = {"commit": "ab" * 20, "changed": True}
    provenance = {"link": "netem", "jobs": "auto", "pages": pages, "revision": revision}
    once = {key: outcome for key, outcome in ALL_OK.items() if key.repetition == 0}
    changes = {"repetitions": 3, "design_text": 'name = "campaign-0"\n', "provenance": provenance}
    page = Page(page_of(*filled(once, **changes)))
    assert "exactly what ran. 8 of 24 planned trials were run; these are" in page.text
    run = "fecbench run campaign-0.toml --db campaign-0.sqlite"
    assert (
        f"{run} --link netem --jobs auto --filter repetition=0\n"
        "fecbench report --db campaign-0.sqlite --output campaign-0" in page.source
    )
    assert f"pages/photo-site.json with the SHA-256 hash {'ab' * 32}" in page.text
    assert "not shown" not in page.source


@pytest.mark.usefixtures("unrendered")
def test_beside_a_map_the_page_leaves_out_the_same_ratios_in_cells_and_pairs(
    filled: Filled, tmp_path: Path
) -> None:
    points = [{"bandwidth_mbps": 1.0 + n % 6, "loss.p": 0.01 + 0.001 * n} for n in range(32)]
    outcomes = {
        TrialKey(variant, "download-2000", point, 0): ("ok", 1.0 + (variant == XOR) * point / 32)
        for variant, point in product((OFF, XOR), range(len(points)))
    }
    size = Workload(label="download-2000", name="download", parameters={"size_bytes": 2000})
    database, campaign = filled(outcomes, points=points, workloads=[size])
    left_out = {f"{kind}-rquic-xor{suffix}" for kind in ("cells", "pairs") for suffix in SUFFIXES}
    for name in left_out:
        (tmp_path / name).write_text("of an earlier report")
    counts: list[tuple[int, int]] = []
    paths = report(database, campaign, tmp_path, tell=lambda number, total, _: counts.append((number, total)))
    assert {"map-rquic-xor.png", "effects-rquic-xor.png"} <= {path.name for path in paths.pngs}
    assert not left_out & {path.name for path in tmp_path.iterdir()}
    assert counts[-1] == (len(paths.pngs) - 1, len(paths.pngs))
    assert "fecbench figure lists more" in Page(paths.html.read_text()).text
    assert {"cells-rquic-xor", "pairs-rquic-xor"} <= named(gather(database, campaign)).keys()


@pytest.mark.usefixtures("unrendered")
def test_the_figures_of_a_paper_stand_beside_its_claims(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = {"holds": True, "fails": False, "is less": False, "open": None}
    verdicts = ("agrees", "differs", "agrees in direction", "cannot tell")
    result = PaperFigure(
        name="paper-fig1",
        number="Paper 2020, Fig. 1",
        caption="What the paper draws.",
        draw=lambda _frame, campaign: figures.points(campaign),
        claims=lambda _frame, _campaign: [
            Claim(
                f"claim that {text}",
                f"paper on {text}",
                f"measured of {text}",
                holds,
                in_direction=text == "is less",
                size="above 1",
                ours="0.9",
            )
            for text, holds in judged.items()
        ],
        differences=lambda _frame, campaign: [f"We ran {campaign.name}."],
    )
    monkeypatch.setattr(papers, "figures_of", lambda _campaign: [result])
    paths = report(*filled({}), tmp_path)
    assert (tmp_path / "paper-fig1.png") in paths.pngs
    page = Page(paths.html.read_text())
    for text, verdict in zip(judged, verdicts, strict=True):
        row = f"claim that {text} paper on {text} above 1; ours 0.9 measured of {text} {verdict}"
        assert row in page.text
    assert "Paper 2020, Fig. 1" in page.text
    assert "We ran campaign-0." in page.text


def test_a_page_shows_each_calibration_of_the_link_and_when_there_was_none(filled: Filled) -> None:
    lines = [
        {"name": "rate error <at 10 Mbps>", "value": 0.000123456, "bound": 0.001, "unit": "", "good": True},
        {"name": "rate", "value": 10.0, "bound": None, "unit": "Mbps", "good": True},
    ]
    measured = {"kind": "brief", "at": "2026-01-01T00:00", "backend": "wire", "measurements": lines}
    skipped = {"kind": "skipped", "at": "2026-02-02T00:00"}
    provenance = {"calibration": [measured | {"good": True}, skipped]}
    page = Page(page_of(*filled({}, provenance=provenance)))
    assert "2026-01-01T00:00, wire: every bound holds" in page.text
    assert "rate error <at 10 Mbps>" in page.text
    assert "0.0001235" in page.text
    assert "2026-02-02T00:00: not measured, on request (--no-calibrate)." in page.text
    provenance["calibration"][0]["good"] = False
    assert "not every bound holds" in Page(page_of(*filled({}, provenance=provenance))).text


def test_a_page_says_of_how_many_trials_the_lateness_is_not_known(filled: Filled, make: Make) -> None:
    database, campaign = filled({})
    for n, (late, state) in enumerate([(0, "ok"), (None, "ok"), (None, "ok"), (None, "failed"), (3, "ok")]):
        frames = {"queue_dropped": 0, "late": late, "lateness_us": None}
        links = {"internet": {"directions": {"up": frames, "down": frames}}}
        seeds = {"content": 1, "internet/up": 2, "internet/down": 3}
        database.record(campaign.id, make(n, state=state, links=links, seeds=seeds))
    page = Page(page_of(database, campaign))
    unknown = "Of 2 trials that are ok it is not known how late packets left the link: an older fecbench"
    assert unknown in page.text


NOT_DRAWN: list[tuple[Any, dict[str, Any], list[str]]] = [
    ({}, {}, ["No trial is ok, so", "0 of 8000 planned trials are ok (not ok: 0, not run: 8000)."]),
    (
        dict.fromkeys(KEYS, ("failed", 1.0)),
        {"repetitions": 3},
        ["No trial is ok, so", "(not ok: 24, not run: 0)"],
    ),
    (
        {key: ("ok" if key.variant == OFF else "invalid", 1.0) for key in KEYS},
        {},
        ["No repetition is ok, with a DCT above 0 s, for a variant and for its baseline"],
    ),
    (
        {key: ("ok", 1.0) for key in KEYS if key.variant == OFF},
        {"variants": [Variant(label=OFF, implementation="rquic", options={}, baseline=True)]},
        ["This design has one variant only", "No variant could be compared with a baseline."],
    ),
    (ALL_OK, {"variants": "without baseline"}, ["No variant of this design is a baseline"]),
    ({}, {"points": [{}]}, ["This design varies no factor"]),
]


@pytest.mark.usefixtures("unrendered")
def test_what_cannot_be_drawn_is_said_in_a_sentence(
    filled: Filled, variants_without_baseline: list[Variant], tmp_path: Path
) -> None:
    for outcomes, changes, sentences in NOT_DRAWN:
        if changes.get("variants") == "without baseline":
            changes = {"variants": variants_without_baseline}
        stale = [tmp_path / f"ratio{suffix}" for suffix in SUFFIXES]
        for file in stale:
            file.write_bytes(b"of an earlier report")
        paths = report(*filled(outcomes, **changes), tmp_path)
        page = Page(paths.html.read_text())
        for sentence in sentences:
            assert sentence in page.text, sentences
        assert page.tags.count("img") == len(paths.pngs) < 3, sentences
        assert not any(file.exists() for file in stale), sentences


@pytest.mark.usefixtures("unmade")
def test_a_report_without_vectors_leaves_no_vectors_of_an_earlier_one(filled: Filled, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    whole = report(*filled({}), folder, vectors=True)
    assert len(whole.pngs) == len(whole.svgs) == len(whole.pdfs) > 0
    paths = report(*filled({}), folder)
    assert (paths.pngs, paths.svgs, paths.pdfs) == (whole.pngs, [], [])
    assert {file.suffix for file in folder.iterdir()} == {".html", ".png"}


@pytest.mark.usefixtures("unrendered")
def test_trials_without_a_dct_leave_a_sentence(filled: Filled, make: Make, tmp_path: Path) -> None:
    database, campaign = filled({})
    database.record(campaign.id, make(0, metrics={"client": {"handshake_s": 0.1}}))
    page = Page(report(database, campaign, tmp_path).html.read_text())
    assert "No trial measured client.dct_s" in page.text


@pytest.mark.usefixtures("unmade")
def test_a_folder_that_cannot_be_written_is_refused(filled: Filled, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (file, file / "below"):
        with pytest.raises(BadInput, match=re.escape(str(folder))) as refusal:
            report(*filled({}), folder)
        assert "\n" not in str(refusal.value)


def test_points_are_drawn_for_any_number_of_factors_choices_included(filled: Filled, tmp_path: Path) -> None:
    for factors in (1, 2, 5):
        points = [
            {"loss.model": model} | {f"factor_{n}_ms": float(n + i) for n in range(factors - 1)}
            for i, model in enumerate(["uniform", "ge", "ge"])
        ]
        _, campaign = filled({}, points=points)
        figure = figures.points(campaign)
        assert len(figure.axes) == max(1, factors * (factors - 1) // 2), factors
        figures.save(figure, tmp_path / "points.png")


def test_workloads_that_differ_in_more_than_size_are_named_by_their_label(filled: Filled) -> None:
    page = Workload(label="page-3", name="page", parameters={"objects": 3})
    _, sizes = filled({})
    _, mixed = filled({}, workloads=[*sizes.workloads, page])
    assert list(figures.workload_names(sizes).values()) == ["10 kB", "2 kB"]
    assert list(figures.workload_names(mixed).values()) == ["download-10000", "download-2000", "page-3"]


def test_a_variant_keeps_its_colour_in_every_figure_and_when_others_fail(filled: Filled) -> None:
    database, campaign = filled(ALL_OK)
    _, failed = filled({key: ("ok" if key.variant == XOR else "failed", 1.0) for key in KEYS})
    frame = frames.trials(database, campaign)
    boxes = [patch.get_facecolor()[:3] for patch in figures.dct(frame, campaign).axes[0].patches]
    panels = figures.ratio_ecdf(frame, campaign).axes
    alone = figures.dct(frames.trials(database, failed), failed).axes[0].patches
    off, xor = boxes[0], boxes[-1]
    assert off != xor
    assert sorted(boxes) == sorted([off, xor] * 2)
    assert {patch.get_facecolor()[:3] for patch in alone} == {xor}
    assert [axes.lines[-1].get_color() for axes in panels] == [xor] * 2


@pytest.mark.usefixtures("unrendered")
def test_figures_of_names_of_the_same_letters_have_files_of_their_own(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for _ in range(2):
        folder.draw("pairs-xor-4-5", "", Figure)
    assert [path.name for path in folder.with_suffix(".svg")] == ["pairs-xor-4-5.svg", "pairs-xor-4-5-2.svg"]
