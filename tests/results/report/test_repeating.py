"""The commands that repeat a campaign run what was run, and where they do not, the page says so."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from fecbench.results.analysis import frames
from fecbench.results.report import repeating
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey

Filled = Callable[..., tuple[Database, CampaignInfo]]

COMMITTED = {"commit": "ab" * 20, "changed": False}
VARIANTS, WORKLOADS = ("rquic-off", "rquic-xor"), ("download-10000", "download-2000")
KEYS = [TrialKey(*key) for key in product(VARIANTS, WORKLOADS, (0, 1), range(3))]


RUN: list[tuple[Callable[[TrialKey], bool], list[str] | None, list[str]]] = [
    (lambda _: True, [], []),
    (
        lambda key: key.repetition == 0,
        ["repetition=0"],
        ["8 of 24 planned trials were run; these are what the command runs."],
    ),
    (
        lambda key: key.repetition != 1 and key.workload == "download-2000",
        ["workload=download-2000", "repetition=0", "repetition=2"],
        ["8 of 24 planned trials were run; these are what the command runs."],
    ),
    (lambda key: key != KEYS[5], None, ["23 of 24 planned trials were run; the command runs all."]),
    (lambda _: False, [], ["0 of 24 planned trials were run; the command runs all."]),
]


def test_filters_name_the_trials_that_were_run_where_they_can(filled: Filled) -> None:
    for was_run, filters, doubts in RUN:
        outcomes = {key: ("ok", 1.0) for key in KEYS if was_run(key)}
        database, campaign = filled(outcomes, repetitions=3, provenance={"revision": COMMITTED})
        frame = frames.trials(database, campaign)
        assert repeating.filters_of(frame, campaign) == filters, doubts
        assert repeating.doubts(frame, campaign, filters) == doubts, doubts


REVISIONS: list[tuple[dict[str, Any], str]] = [
    (COMMITTED, ""),
    (COMMITTED | {"changed": True}, "It was run with changes that were not committed"),
    (COMMITTED | {"changed": None}, "Whether fecbench had changes"),
    ({"commit": None, "changed": None}, "Which revision of fecbench it was run with is not known."),
]


def test_a_revision_that_is_not_what_ran_is_doubted(filled: Filled) -> None:
    for revision, doubt in REVISIONS:
        outcomes = dict.fromkeys(KEYS, ("ok", 1.0))
        database, campaign = filled(outcomes, repetitions=3, provenance={"revision": revision})
        doubts = repeating.doubts(frames.trials(database, campaign), campaign, [])
        assert [sentence[: len(doubt)] for sentence in doubts] == ([doubt] if doubt else []), revision


def test_no_other_file_of_results_names_a_command_line() -> None:
    folder = Path(repeating.__file__).parents[1]
    commands = (
        "fecbench run",
        "fecbench show",
        "fecbench report",
        "make build",
        "--no-calibrate",
        "--resume",
    )
    naming = {
        str(path.relative_to(folder))
        for path in (*folder.rglob("*.py"), *folder.rglob("*.html"))
        if any(command in path.read_text() for command in commands)
    }
    assert naming == {"report/repeating.py"}
