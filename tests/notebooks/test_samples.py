"""Recordings in virtual time come out again, here and today, to the last bit.

The recordings were made by other builds on another machine. Whatever moves a packet of these implementations
is seen here; the samples, with the pages that quote them, are to be made anew then.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.finding import ours
from tests.support import preloaded, samples

QUERY = """
    SELECT variant, workload, point, repetition, checks ->> '$.digest'
    FROM trials JOIN campaigns ON campaigns.id = campaign_id
    WHERE name = ? AND superseded = 0 AND checks ->> '$.metrics_digest' IS NOT NULL
"""
COMMANDS = """
    SELECT json_each.value FROM (SELECT provenance FROM campaigns UNION ALL SELECT provenance FROM starts),
    json_each(provenance, '$.command')
"""
Digests = dict[tuple[str, str, int, int], str]


def digests(database: Path, campaign: str) -> Digests:
    with closing(sqlite3.connect(database)) as connection:
        return {tuple(key): digest for *key, digest in connection.execute(QUERY, [campaign])}


def test_a_sample_tells_no_folder_of_the_machine(shared_folder: Path) -> None:
    for sample in samples.NAMES:
        with closing(sqlite3.connect(samples.database_of(sample, shared_folder))) as connection:
            words = [word for (word,) in connection.execute(COMMANDS)]
        assert "run" in words, sample
        assert [word for word in words if Path(word).is_absolute()] == [], sample


@pytest.mark.parametrize(
    ("implementation", "sample", "design", "filters"),
    [
        pytest.param(
            *("noq-fec", "networking2019-virtual", "networking2019-uniform"),
            ("point=7", "point=16", "repetition=0", "repetition=3"),
            marks=pytest.mark.slow,
        ),
        ("noq-fec", "networking2019-virtual", "networking2019-ge", ("point=100", "repetition=0")),
        ("rquic", "rquic2021-virtual", "rquic2021-page", ("point=3", "repetition=1")),
        ("noq-fec", "demo", "demo", ("point=20", "repetition=7")),
        (
            *("noq-fec", "realtime-voice", "realtime-voice"),
            (
                "variant=BBRv3, RLC by deadline",
                "workload=messages-voice-10-datagram",
                "point=7",
                "repetition=0",
            ),
        ),
        ("noq-fec", "video-ladder", "video-ladder", ("variant=BBRv3, safe", "point=8", "repetition=0")),
    ],
)
def test_trials_have_the_digests_that_were_recorded(
    tmp_path: Path,
    shared_folder: Path,
    implementation: str,
    sample: str,
    design: str,
    filters: tuple[str, ...],
) -> None:
    for program in ours().find(implementation, "tests").programs():
        if not program.exists():
            pytest.skip(f"needs {program}: make build")
    now, then = tmp_path / "now.sqlite", samples.database_of(sample, shared_folder)
    options = [word for text in filters for word in ("--filter", text)]
    words = ["run", design, "--engine", "virtual", "--jobs", "2", "--db", str(now), *options]
    # Status 1 says that some trials are not ok, as some that were recorded.
    assert preloaded.fecbench(words, REPOSITORY, os.environ, 200).returncode in (0, 1)
    digests_now, digests_then = digests(now, design), digests(then, design)
    assert digests_now
    assert digests_now == {key: digests_then[key] for key in digests_now}
