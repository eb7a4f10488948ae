"""Labels, reasons, help texts and what endpoints write are shown as they are.

No command takes them for markup, and no terminal obeys them.
"""

import json
import os
import pty
import random
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fecbench.results.store import stored_series
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.campaigns import new_campaign, trial, variants, workload
from tests.support.declarations import declare, option

CLEAR_SCREEN, NEW_TITLE, C1 = "\x1b[2J", "\x1b]0;mine\x07", "\x9b2J"
ESCAPES = CLEAR_SCREEN + NEW_TITLE + C1
MARKUP = "[xor] [/4] :warning: $x_{$"
LABELS = ("rQUIC [xor]", "rQUIC [rlc]", f"hostile {MARKUP} {ESCAPES}")
WORKLOAD = f"page-{MARKUP} {ESCAPES}"
REASON = f"[error] no route [/usr/lib/x.so] {ESCAPES}"
POINTS = 6


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns of one design, each with trials of all labels that are ok, and some that failed."""
    path = tmp_path_factory.mktemp("hostile") / "h.sqlite"
    drawing = random.Random(1)
    window = stored_series.of_endpoint(
        "client", "cwnd", pa.table({"t_s": [0.0, 0.5], "window_bytes": [1, 2]})
    )
    with Database.open(str(path), create=True) as opened:
        for name in (f"one {MARKUP} {ESCAPES}", "two"):
            info = opened.create_campaign(
                new_campaign(
                    name,
                    title=f"title {MARKUP} {ESCAPES}",
                    repetitions=2,
                    provenance={"kernel": ESCAPES},
                    points=[{"owd_ms": point, "network": f"{MARKUP} {ESCAPES}"} for point in range(POINTS)],
                    variants=variants(*LABELS),
                    workloads=[workload(WORKLOAD, "page")],
                )
            )
            start = opened.start(info.id, f"host {MARKUP} {ESCAPES}", {"kernel": ESCAPES})
            records = []
            for point in range(POINTS):
                for repetition in range(2):
                    for label in LABELS:
                        failed = point == 0 and repetition == 1
                        record = trial(
                            TrialKey(label, WORKLOAD, point, repetition),
                            "failed" if failed else "ok",
                            REASON if failed else "",
                            metrics={"client": {"dct_s": drawing.uniform(1, 2)}},
                            checks={MARKUP: ESCAPES},
                            exits={"client": 1},
                            stderr={"client": f"{MARKUP} on standard error {ESCAPES}\n"},
                            task={"topology": MARKUP + ESCAPES},
                            series=[window],
                        )
                        records.append(record)
            opened.record_all(info.id, records, start.id)
    return path


FAILED = 4
"""The number of the first trial that failed."""


def assert_harmless(printed: str) -> None:
    assert not set(printed) & set("\x1b\x9b\x07")


READERS: list[tuple[object, ...]] = [
    ("show",),
    ("show", "--trials"),
    ("show", "--overhead"),
    ("show", "--json"),
    ("show", FAILED),
    ("show", FAILED, "--json"),
    ("show", FAILED, "--plot", "OUT.svg"),
    ("explain", "--campaign", "two", "--output", "OUT"),
    ("explain", "--campaign", "two", "--json"),
    ("aa", "between", f"one {MARKUP} {ESCAPES}", "two"),
    ("export", "--campaign", "two", "--output", "OUT.csv"),
    ("report", "--campaign", "two", "--output", "OUT"),
]


@pytest.mark.usefixtures("unrendered")
def test_no_command_that_reads_a_database_obeys_what_is_in_it(
    fecbench_here: Any, database: Path, tmp_path: Path
) -> None:
    for arguments in READERS:
        placed = [str(argument).replace("OUT", str(tmp_path / "out")) for argument in arguments]
        result = fecbench_here(*placed, "--db", database)
        assert result.returncode in (0, 1), result  # of aa: 1 when a difference was found
        assert "Traceback" not in result.stderr
        assert_harmless(result.stdout + result.stderr)


def test_variants_that_differ_in_brackets_alone_are_told_apart(fecbench_here: Any, database: Path) -> None:
    for arguments in ([], ["--trials"]):
        printed = fecbench_here("show", "--db", database, *arguments).stdout
        assert "rQUIC [xor]" in printed
        assert "rQUIC [rlc]" in printed
        assert MARKUP in printed
    assert "[error] no route [/usr/lib/x.so] [2J]0;mine2J" in printed
    of_trial = fecbench_here("show", FAILED, "--db", database).stdout
    assert "[error] no route [/usr/lib/x.so] [2J]0;mine2J" in of_trial
    assert f"{MARKUP} on standard error [2J]0;mine2J" in of_trial


DESIGN = """
title = "TITLE"
[plan]
method = "list"
points = [{ network = "MARKUP" }]
[factors.network.linked]
"MARKUP" = { bandwidth_mbps = 10, owd_ms = 5 }
other = { bandwidth_mbps = 20, owd_ms = 5 }
[[workloads]]
name = "download"
size_bytes = 1000
[[variants]]
label = "rQUIC [xor]"
implementation = "hostile"
[[variants]]
label = "rQUIC [rlc]"
implementation = "hostile"
[constants]
option.word = "MARKUP"
"""
WORD = option("[/4] \u001b]0;mine\u0007", help="HELP [xor] [/4] \u001b[2J \u009b2J")
ENDPOINT = r"""#!/bin/sh
printf '[error] no route [/4]\033]0;mine\007\033[2J\n' >&2
exit 3
"""


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A folder with an implementation whose every text is hostile."""
    title = f"{MARKUP} \u001b[2J"
    folder = declare(tmp_path / "folders" / "hostile", "endpoint.sh", title=title, options={"word": WORD})
    (folder / "endpoint.sh").write_text(ENDPOINT)
    (folder / "endpoint.sh").chmod(0o755)
    return folder.parent


@pytest.fixture
def design(write_design: Callable[..., Path], tmp_path: Path) -> Path:
    return write_design(tmp_path, DESIGN.replace("TITLE", MARKUP).replace("MARKUP", MARKUP))


def test_texts_of_an_impl_toml_are_shown_as_they_are_a_broken_one_by_doctor(
    fecbench_here: Any, folders: Path
) -> None:
    for arguments in ((), ("hostile",)):
        result = fecbench_here("implementations", *arguments, "--implementations", folders)
        assert f"title      {MARKUP} [2J" in result.stdout
        assert ("HELP [xor] [/4] [2J 2J" in result.stdout) == bool(arguments)
        assert_harmless(result.stdout + result.stderr)
    with (folders / "hostile" / "impl.toml").open("a") as declaration:
        declaration.write('["\\u001b[2J [/4]"]\n')
    result = fecbench_here("doctor", "--implementations", folders)
    assert "[2J [/4]" in result.stdout
    assert_harmless(result.stdout + result.stderr)


@pytest.mark.usefixtures("unrendered")
def test_plan_shows_titles_labels_and_choices_as_they_are(
    fecbench_here: Any, folders: Path, design: Path, tmp_path: Path
) -> None:
    figure = tmp_path / "plan.svg"
    result = fecbench_here("plan", "--no-measure", design, "--implementations", folders, "--plot", figure)
    assert result.returncode == 0
    assert f"little: {MARKUP}\n" in result.stdout
    assert figure.exists()
    assert_harmless(result.stdout + result.stderr)


GIVEN: list[tuple[str, ...]] = [
    ("plan", f"{ESCAPES}[/4]"),
    ("losses", "pattern", "--drop", f"{ESCAPES}[/4]"),
    ("show", "--db", f"{ESCAPES}[/4]"),
    ("show", f"--{ESCAPES}[/4]"),
    ("page", "from-har", f"{ESCAPES}[/4]", "--output", "/nowhere.json"),
    (f"{ESCAPES}[/4]",),
    ("report", "--db", "x.sqlite", "--output", "x", "--metric", ESCAPES),
    ("topo", f"{ESCAPES}[/4]", "--bandwidth-mbps", "1", "--owd-ms", "1"),
    ("implementations", f"{ESCAPES}[/4]"),
    ("replay", "1", "--db", f"{ESCAPES}[/4]", "--output", "x"),
]


def test_an_error_shows_what_was_given_as_it_is(
    fecbench_here: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for arguments in GIVEN:
        monkeypatch.chdir(tmp_path)
        assert_harmless(fecbench_here(*arguments).refusal())


def test_a_label_or_a_name_of_a_campaign_with_a_control_character_is_refused(
    fecbench_here: Any, write_design: Any, little_design: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    for code in ("\\u001b", "\\u009b", "\\u202e", "\\u2028"):
        text = DESIGN.replace("rQUIC [xor]", f"rQUIC {code}").replace("MARKUP", "x")
        line = fecbench_here("plan", write_design(tmp_path / "other", text)).refusal()
        assert "label" in line and "must be one line of text" in line
    line = fecbench_here("run", little_design, "--campaign", f"mine {CLEAR_SCREEN}").refusal()
    assert r"--campaign 'mine \x1b[2J': must be one line of printable text" in line


def on_a_terminal(command: list[str]) -> tuple[int, str]:
    """The status of a command whose output and errors go to a terminal, and what it sent there."""
    ours, its = pty.openpty()
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its)
    os.close(its)
    sent = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # the terminal's other end is closed
            break
        sent += data
    os.close(ours)
    return process.wait(60), sent.decode(errors="replace")


def assert_unharmed(sent: str) -> None:
    """Assert that the output to a terminal has nothing hostile. It may have colours."""
    assert not [escape for escape in (CLEAR_SCREEN, NEW_TITLE, C1, "\x07") if escape in sent]


# One after another, in a process whose libraries are loaded once.
SHOWN = """
import sys
from fecbench.runners.commands.command_line import main
_, database, failed = sys.argv
for words in ([], ["--trials"], [failed]):
    sys.argv = ["fecbench", "show", *words, "--db", database]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def test_a_terminal_obeys_nothing_of_what_a_database_holds(database: Path) -> None:
    status, sent = on_a_terminal([sys.executable, "-c", SHOWN, str(database), str(FAILED)])
    assert status == 0, sent
    assert sent.count("rQUIC [xor]") >= 3
    assert_unharmed(sent)


@pytest.mark.usefixtures("can_run_trials")
def test_a_terminal_obeys_nothing_of_what_endpoints_write_while_a_campaign_runs(
    fecbench: Any, folders: Path, design: Path, tmp_path: Path
) -> None:
    database, name = tmp_path / "ran.sqlite", "[/4] [red]"
    options = ["--implementations", str(folders), "--no-calibrate", "--filter", "repetition=0"]
    command = [fecbench.path, "run", str(design), "--db", str(database), "--campaign", name, *options]
    status, sent = on_a_terminal(command)
    assert status == 1, sent
    assert "Traceback" not in sent
    assert f"campaign {name}: 2 trials to run" in sent
    assert "[error] no route [/4]" in sent.replace("\r\n", "")
    assert_unharmed(sent)
    (failed, _) = json.loads(fecbench("show", "--db", database, "--json").stdout)["trials"]
    assert failed["state"] == "failed"
