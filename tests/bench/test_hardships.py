"""The faults that the bench of hardships reports: leftovers, half files, trials that are lost or doubled."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from bench.hardships import hardships, judging, surroundings
from bench.hardships.case import Case, case_of
from bench.hardships.deeds import Deed, Place
from bench.hardships.judging import Left, Run, Stored
from tests.waiting import wait_until

DEED = Deed(lambda _: [], same_files=True)
KEYS = [("small", "off", "download", point, 0) for point in range(3)]


def stored(*keys: judging.Key, **more: object) -> Stored:
    runs = {number: Run(key, 1, "ok", 1, 0.5, 0.4) for number, key in enumerate(keys, 1)}
    return replace(Stored(runs, 0, ("digest",)), **more)


UNDISTURBED = Left(0, "", 1.0, {"a.csv": "content"}, stored(*KEYS))


def test_a_command_that_ends_as_undisturbed_is_not_wrong() -> None:
    assert judging.finished(DEED, UNDISTURBED, stored(*KEYS[:2]), UNDISTURBED) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": 1}, "status 1, not 0"),
        ({"words": "Traceback (most recent call last):"}, "a traceback"),
        ({"files": {}}, "missing: a.csv"),
        ({"files": {"a.csv": "content", ".a.csv.part": ""}}, "left: .a.csv.part"),
        ({"files": {"a.csv": "other"}}, "other content: a.csv"),
        ({"stored": stored(*KEYS[1:], KEYS[0])}, "2 runs were lost or changed"),
        ({"stored": stored(*KEYS[:2])}, "2 trials, not 3"),
        ({"stored": stored(*KEYS, KEYS[0])}, "1 trials count twice"),
        ({"stored": stored(*KEYS, claims=2)}, "2 groups are still claimed"),
        ({"stored": stored(*KEYS, digests=("another",))}, "came to something else"),
        ({"stored": stored(*KEYS, fault="results.sqlite is damaged")}, "results.sqlite is damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_differs_from_the_undisturbed_command_is_wrong(change: dict[str, object], said: str) -> None:
    wrong = judging.finished(DEED, UNDISTURBED, stored(*KEYS[:2]), replace(UNDISTURBED, **change))
    assert any(said in line for line in wrong), wrong


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("fecbench: /place/x.csv: cannot be written: the disk is full\n", ""),
        ("[1/2] a trial\nfecbench: /place/x.csv: cannot be written: the disk is full\n", ""),
        ("fecbench: cannot be written: the disk is full\n", "no file is named"),
        ("fecbench: /place/x.csv: full\nfecbench: again\n", "does not end with one line"),
        ("Traceback (most recent call last):\nfecbench: /place/x.csv: full\n", "a traceback"),
        ("", "does not end with one line"),
    ],
)
def test_a_full_disk_is_to_be_told_in_one_line_that_names_a_file(words: str, wrong: str) -> None:
    lines = judging.refused(replace(UNDISTURBED, status=1, words=words), Path("/place"))
    assert [line.partition(":")[0] for line in lines] == [wrong] * bool(wrong) or wrong in lines[0]


def test_a_command_with_invalid_trials_went_on_and_one_that_says_why_it_failed_did_not() -> None:
    emulated = Deed(lambda _: [], trials="emulated")
    for words, went_on in (("[1/2] invalid\n", True), ("fecbench: /place/x: the disk is full\n", False)):
        after = replace(UNDISTURBED, status=1, words=words)
        assert judging.is_carried_out(emulated, UNDISTURBED, after) == went_on
        assert not judging.is_carried_out(DEED, UNDISTURBED, after)


def test_files_are_missed_unless_an_emulated_trial_named_one_for_which_there_was_no_room() -> None:
    emulated = Deed(lambda _: [], trials="emulated")
    named = "server: No space left on device: '/place/content.series.csv'"
    for deed, words, missed in ((emulated, named, False), (emulated, "invalid", True), (DEED, named, True)):
        after = replace(UNDISTURBED, status=int(deed.emulated), said=words, files={})
        wrong = judging.finished(deed, UNDISTURBED, stored(*KEYS[:2]), after)
        assert wrong == ["missing: a.csv"] * missed


def whole_files(folder: Path) -> None:
    texts = {
        "a.html": "<html><p>x</p></html>\n",
        "a.json": '{"a": [1, 2]}\n',
        "a.xml": "<a><b/></a>\n",
        "a.csv": "a,b\n",
        "a.md": "# a\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for suffix in ("png", "svg", "pdf"):
        Figure(figsize=(1, 1)).savefig(folder / f"a.{suffix}")


def test_a_file_that_lacks_its_last_letters_is_half_written_and_a_hidden_one_may_be(tmp_path: Path) -> None:
    whole_files(tmp_path)
    assert judging.half_written(tmp_path) == []
    names = sorted(path.name for path in tmp_path.iterdir())
    for name in names:
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content.rstrip()[:-2])
        (tmp_path / f".{name}").write_bytes(content[:-2])
    assert judging.half_written(tmp_path) == [f"half written: {name}" for name in names]


def test_a_process_and_a_file_that_are_left_are_seen_and_the_process_can_be_ended(tmp_path: Path) -> None:
    before = surroundings.look(tmp_path)
    assert surroundings.look(tmp_path).left(before) == []
    (tmp_path / "fecbench-1-abcdefgh").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment
    ) as process:
        wait_until(lambda: bool(surroundings.processes_of(tmp_path)), "its environment")
        remains = surroundings.look(tmp_path).left(before)
        surroundings.end_all_of(tmp_path)
        assert process.wait() == -signal.SIGKILL
    assert [line.partition(":")[0] for line in remains] == ["processes left", "temporary files left"]
    assert str(process.pid) in remains[0]
    assert "fecbench-1-abcdefgh" in remains[1]


class Script(Deed):
    """A program of the test in the place of fecbench."""

    def command(self, place: Place) -> list[str]:
        return [sys.executable, "-c", *map(str, self.words(place))]


CARELESS = """
import sys, time
from pathlib import Path
with Path(sys.argv[1]).open("w") as file:
    file.write('{"a":')
    file.flush()
    time.sleep(0.2)
    file.write(' 1}')
"""
CAREFUL = """
import sys, time
from pathlib import Path
from fecbench.whole_files import replacing
with replacing(Path(sys.argv[1])) as unfinished, unfinished.open("w") as file:
    file.write('{"a":')
    file.flush()
    time.sleep(0.2)
    file.write(' 1}')
"""


def cases(program: str, folder: Path) -> Case:
    return case_of(
        Script(lambda place: [program, place.output / "a.json"], same_files=True), Place(folder, folder)
    )


@pytest.mark.parametrize(
    ("program", "wrong"), [(CARELESS, {"half written: a.json"}), (CAREFUL, set[str]())], ids=["half", "whole"]
)
def test_a_kill_while_a_file_is_written_shows_whether_it_is_written_whole(
    program: str, wrong: set[str], tmp_path: Path
) -> None:
    case = cases(program, tmp_path / "place")
    chance = random.Random(1)
    assert {line for _ in range(4) for line in hardships.kill(case, chance)} == wrong


def test_a_trial_that_stood_still_and_is_ok_has_a_wrong_number() -> None:
    usual = stored(*KEYS)
    runs = {
        1: replace(usual.runs[1], dct_s=0.4 + hardships.STOP_S),
        2: replace(usual.runs[2], dct_s=0.4 + hardships.STOP_S, state="invalid"),
        3: replace(usual.runs[3], dct_s=0.5),
    }
    (line,) = hardships.wrong_times(usual, Stored(runs))
    assert str(KEYS[0]) in line


def test_a_trial_that_took_longer_than_its_command_was_measured_by_a_clock_that_leapt() -> None:
    runs = {1: replace(stored(*KEYS).runs[1], duration_s=3600.0), 2: stored(*KEYS).runs[2]}
    (line,) = hardships.wrong_durations(replace(UNDISTURBED, stored=Stored(runs)))
    assert "3.6e+03 s in a command of 1 s" in line
