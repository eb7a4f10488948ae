"""The table of where the time of the tests goes, and the seconds of CPU in it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import minutes
from tests.support import cost, preloaded

BUSY = "import time\nwhile time.process_time() < 0.2: pass"
REPORT = """
<testsuites><testsuite>
<testcase classname="tests.a.test_b" name="test_one[x]" time="3.5">
<properties><property name="cpu_s" value="1.25"/></properties></testcase>
<testcase classname="tests.a.test_b" name="test_two" time="1.0">
<properties><property name="cpu_s" value="0.75"/><property name="other" value="x"/></properties></testcase>
<testcase classname="tests.test_c" name="test_skipped" time="0.25"/>
</testsuite></testsuites>
"""


def test_the_seconds_of_a_process_that_a_test_starts_are_counted() -> None:
    before = cost.cpu_s()
    subprocess.run([sys.executable, "-S", "-c", BUSY], check=True)
    assert cost.cpu_s() - before > 0.15


def test_the_seconds_of_a_preloaded_process_are_counted(tmp_path: Path) -> None:
    preloaded.begin()
    before = cost.cpu_s()
    preloaded.script(
        "import time\nbegun = time.process_time()\n" + BUSY.replace("()", "() - begun"), tmp_path, {}, 60
    )
    assert cost.cpu_s() - before > 0.15


def test_the_dearest_files_and_tests_come_first_with_what_they_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    monkeypatch.setattr(sys, "argv", ["minutes", str(report)])
    minutes.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert lines == [
        ["CPU", "idle", "by", "file"],
        ["2.0", "2.5", "tests/a/test_b.py"],
        ["0.0", "0.2", "tests/test_c.py"],
        ["2.0", "2.8", "all", "2"],
        ["CPU", "idle", "by", "test"],
        ["1.2", "2.2", "tests/a/test_b.py::test_one[x]"],
        ["0.8", "0.2", "tests/a/test_b.py::test_two"],
        ["0.0", "0.2", "tests/test_c.py::test_skipped"],
        ["2.0", "2.8", "all", "3"],
    ]
