"""A break finds its place by its text, and its tests by the names of files."""

import pytest

from fecbench.checkout import REPOSITORY
from tests.breaks.run import BREAKS, Outcome, applied, concerned, outcome_of, texts_of

PATCH = """\
--- a/runners/trial/judge.py
+++ b/runners/trial/judge.py
@@ -9,3 +9,3 @@
 def late(time_s: float) -> bool:
-    return time_s > BOUND_S
+    return time_s >= BOUND_S

"""
OLD, NEW = "    return time_s > BOUND_S\n", "    return time_s >= BOUND_S\n"
BEFORE, AFTER = "def late(time_s: float) -> bool:\n", "\nX = 1\n"
JUDGE = BEFORE + OLD + AFTER


@pytest.mark.parametrize(
    ("texts", "place"),
    [
        ({"runners/trial/judge.py": JUDGE, "a.py": JUDGE}, "runners/trial/judge.py"),
        ({"judging/lateness.py": JUDGE, "a.py": ""}, "judging/lateness.py"),
        ({"a.py": "# other\n" + OLD + AFTER, "a.c": OLD}, "a.py"),
        ({"a.py": JUDGE, "b.py": JUDGE}, ""),
        ({"a.py": BEFORE + NEW}, ""),
    ],
    ids=["in its file", "moved", "other context", "two places", "gone"],
)
def test_break_is_applied_where_its_text_is(texts: dict[str, str], place: str) -> None:
    broken = applied(PATCH, texts)
    assert broken == ((place, texts[place].replace(OLD, NEW)) if place else None)


def test_every_break_has_its_place() -> None:
    texts = {path: text for path, text in texts_of(REPOSITORY).items() if not path.startswith("tests/")}
    lost = [patch.stem for patch in sorted(BREAKS.glob("*.patch")) if not applied(patch.read_text(), texts)]
    assert not lost


def test_nearest_tests_come_first() -> None:
    tests = {
        "tests/a/test_other.py": "judge",
        "tests/runners/trial/test_run.py": "",
        "tests/runners/trial/test_judge.py": "",
        "tests/b/test_import.py": "from fecbench.runners.trial import judge",
        "tests/runners/test_nothing.py": "",
    }
    assert [test.rpartition("_")[2] for test in concerned("runners/trial/judge.py", tests)] == [
        "judge.py",
        "import.py",
        "run.py",
        "other.py",
    ]


def test_every_break_is_one_hunk_of_one_file() -> None:
    for patch in BREAKS.glob("*.patch"):
        assert applied(patch.read_text(), {}) is None


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (
            (1, "FAILED tests/x.py::test_a[1 - 2] - assert\n1 failed"),
            Outcome("killed", "tests/x.py::test_a[1 - 2]"),
        ),
        ((0, "1 passed"), Outcome("survived", "1 passed")),
        ((None, "FAILED tests/x.py::test_a"), Outcome("survived", "no test failed in 9 s")),
        ((4, "ImportError"), Outcome("killed", "pytest cannot begin: ImportError")),
    ],
)
def test_outcome_is_read_from_pytest(
    said: tuple[int | None, str], outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.breaks.run.run", lambda *_: said)
    assert outcome_of(None, ["tests/x.py"], [], [9.0]) == outcome
