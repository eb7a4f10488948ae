"""The queue that a paper's trials met is shown beside its figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fecbench.results.papers.queues import queue_in_words

CATALOG = Path(__file__).parents[3] / "designs" / "catalog"


QUEUES: list[tuple[str, str]] = [
    ("rquic2021-bulk", "holds 100 packets"),
    ("rquic2021-bulk-deep-queue", "holds 1,000 packets"),
    ("rquic2021-bulk-codel", "is CoDel's"),
    ("networking2019-mss", "holds 1.5 bandwidth-delay products"),
    ("networking2019-fairness", "is varied by the design"),
]


def test_the_queue_is_that_of_the_design(filled: Callable[..., Any]) -> None:
    for name, words in QUEUES:
        _, campaign = filled({}, design_text=(CATALOG / f"{name}.toml").read_text())
        assert queue_in_words(campaign) == words, name


USUAL: list[tuple[str, str]] = [
    ("[factors]\nowd_ms = { choices = [1] }", "holds 1.5 bandwidth-delay products"),
    ("[constants]\nup.queue_packets = 7", "is varied by the design"),
    ("[factors.network.linked]\nshort = { queue_packets = 7 }", "is varied by the design"),
    ('[factors]\nqueue = { choices = ["droptail", "codel"] }', "is varied by the design"),
]


def test_a_design_that_says_nothing_of_the_queue_has_the_usual_one(filled: Callable[..., Any]) -> None:
    for design, words in USUAL:
        _, campaign = filled({}, design_text=design)
        assert queue_in_words(campaign) == words, design
