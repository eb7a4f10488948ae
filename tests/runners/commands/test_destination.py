"""`--output` and `--plot` mean the same everywhere: what a command wrote is replaced, nothing else is."""

import contextlib
import errno
import json
import os
from collections.abc import Callable
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.results.store.records import CampaignInfo, StoredTrial
from fecbench.runners import scratch
from fecbench.runners.campaign.replay import Replay
from fecbench.runners.commands.console.destination import check_folder, check_own_folder, fill_own_folder

SMOKE = str(REPOSITORY / "designs" / "catalog" / "smoke.toml")
ENTRY = {
    "startedDateTime": "2026-01-01T00:00:00.000Z",
    "time": 10,
    "request": {"method": "GET", "url": "https://a.example/"},
    "response": {"status": 200, "content": {"size": 1000}, "bodySize": 1000},
    "timings": {"send": 0, "wait": 5, "receive": 5},
}
HAR = {"log": {"entries": [ENTRY]}}

FILES = {
    "export": (["export", "--output"], ".csv"),
    "page make": (["page", "make", "--output"], ".json"),
    "page from-har": (["page", "from-har", "HAR", "--output"], ".json"),
    "plan": (["plan", SMOKE, "--no-measure", "--plot"], ".png"),
}
FOLDERS = {"report": ["report", "--output"], "explain": ["explain", "--output"]}


@pytest.fixture
def call(
    fecbench_here: Any, planted: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: Any
) -> Callable[..., Any]:
    """Calls a command on the planted campaign, without the hours that rules and reports take."""
    har = tmp_path_factory.mktemp("har") / "recorded.har"
    har.write_text(json.dumps(HAR))
    monkeypatch.setenv("FECBENCH_DB", str(planted))
    return lambda words, path: fecbench_here(*(str(har) if word == "HAR" else word for word in words), path)


@pytest.mark.parametrize(("words", "suffix"), FILES.values(), ids=FILES)
def test_a_file_that_exists_is_replaced_and_one_that_cannot_be_written_is_refused_by_its_option(
    call: Any, tmp_path: Path, words: list[str], suffix: str
) -> None:
    path, neighbour = tmp_path / f"out{suffix}", tmp_path / f"other{suffix}"
    assert call(words, path).returncode == 0
    fresh = path.read_bytes()
    for file in (path, neighbour):
        file.write_text("mine")
    assert call(words, path).returncode == 0
    assert len(path.read_bytes()) == len(fresh)
    assert neighbour.read_text() == "mine"
    (tmp_path / f"folder{suffix}").mkdir()
    for name, message in (
        (f"folder{suffix}", "is a folder: give the name of a file"),
        (f"no/such/x{suffix}", "cannot be written: its folder does not exist: make it first"),
        ("x.doc", f"must end with {suffix}"),
    ):
        line = call(words, tmp_path / name).refusal()
        assert f"{words[-1]} {tmp_path / name}: " in line
        assert message in line or (
            message.startswith("must") and suffix in line.partition("must end with")[2]
        )
    assert sorted(tmp_path.iterdir()) == sorted([path, neighbour, tmp_path / f"folder{suffix}"])


@pytest.mark.usefixtures("unmade")
def test_of_a_folder_that_exists_only_what_the_command_wrote_is_replaced(
    call: Any, plant: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FECBENCH_DB", str(plant(tmp_path / "few.sqlite", points=12)))
    words = FOLDERS["report"]
    folder = tmp_path / "not" / "yet" / "there"
    assert call(words, folder).returncode == 0
    written = {path.name: len(path.read_bytes()) for path in folder.iterdir()}
    assert written
    for name in (*written, "mine.txt"):
        (folder / name).write_text("mine")
    assert call(words, folder).returncode == 0
    assert (folder / "mine.txt").read_text() == "mine"
    (folder / "mine.txt").unlink()
    assert {path.name: len(path.read_bytes()) for path in folder.iterdir()} == written


def test_a_folder_that_is_a_file_is_refused_before_anything_is_computed(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for computing in ("frames.trials", "rules.explain"):
        monkeypatch.setattr(f"fecbench.results.analysis.{computing}", lambda *_: pytest.fail("computed"))
    (tmp_path / "file").write_text("mine")
    for words, name in product(FOLDERS.values(), ("file", "file/below/it")):
        line = call(words, tmp_path / name).refusal()
        assert f"--output {tmp_path / name}: cannot be made a folder" in line
    assert (tmp_path / "file").read_text() == "mine"


def test_to_check_a_folder_does_not_make_it(tmp_path: Path) -> None:
    check_folder("--output", tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


@pytest.fixture
def replay(call: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Calls `fecbench replay` into a folder; what it records are files of these names."""

    def replay(path: Path, *names: str) -> Any:
        def run_again(_: CampaignInfo, stored: StoredTrial, __: object, folder: Path) -> Replay:
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text("fresh")
            return Replay(stored, stored, [])

        monkeypatch.setattr("fecbench.runners.campaign.replay.replay", run_again)
        monkeypatch.setattr("fecbench.runners.sandbox.isolation.require", lambda _: None)
        return call(["replay", "1", "--output"], path)

    return replay


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_replay_replaces_the_replay_before_and_nothing_else(replay: Any, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    # No verdicts were recorded that it could be compared by.
    assert replay(folder, "client/a.sqlog", "client.pcap").returncode == 3
    (folder / "mine.txt").write_text("mine")
    (folder / "client" / "a.sqlog").write_text("stale")
    replay(folder, "client/b.sqlog", "server.pcap")
    remains = contents(folder)
    report = json.loads(remains.pop("replay.json"))
    assert remains == {"client/b.sqlog": "fresh", "server.pcap": "fresh", "mine.txt": "mine"}
    assert report["artefacts"] == ["client", "server.pcap"]
    assert report["recorded"]["id"] == report["replayed"]["id"] == 1


def test_a_replay_that_did_not_begin_leaves_its_report_alone(replay: Any, tmp_path: Path) -> None:
    replay(tmp_path / "new")
    assert list(contents(tmp_path / "new")) == ["replay.json"]


def test_a_folder_with_files_of_somebody_else_is_refused_before_a_trial_is_run(
    replay: Any, tmp_path: Path
) -> None:
    for number, there in enumerate(("client/mine.txt", "replay.json")):
        folder = tmp_path / str(number)
        (folder / there).parent.mkdir(parents=True)
        (folder / there).write_text("mine")
        assert "give the name of a new folder" in replay(folder, "client/a.sqlog").refusal()
        assert contents(folder) == {there: "mine"}


def test_what_lies_on_another_disk_is_moved_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    (source / "client").mkdir(parents=True)
    (source / "client" / "a.sqlog").write_text("fresh")
    (source / "server.pcap").write_text("fresh")
    folder.mkdir()
    rename = os.rename

    def refuse(old: Path, new: Path) -> None:
        if Path(old).is_relative_to(source):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    fill_own_folder(folder, source, "check.json", {})
    remains = contents(folder)
    assert json.loads(remains.pop("check.json")) == {"artefacts": ["client", "server.pcap"]}
    assert remains == {"client/a.sqlog": "fresh", "server.pcap": "fresh"}
    assert contents(source) == {}


class Killed(BaseException):
    """The end of this process: none of its later actions takes effect."""


def die_after(changes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so many changes of names in the file system take effect."""
    remains = count(changes, -1)

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **more: Any) -> Any:
            if next(remains) <= 0:
                raise Killed
            return change(*arguments, **more)

        return called

    for name in ("rename", "replace", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("earlier", [[], ["client/b.sqlog", "server.pcap"]], ids=["new", "replayed before"])
def test_whenever_a_replay_is_killed_the_next_one_takes_its_folder_and_nothing_of_it_stays(
    tmp_path: Path, earlier: list[str]
) -> None:
    def record(names: list[str], folder: Path) -> None:
        check_own_folder("--output", folder, "replay.json")
        folder.mkdir(exist_ok=True)
        with scratch.folder(folder) as folder_of_harness:
            for name in names:
                (folder_of_harness / "files" / name).parent.mkdir(parents=True, exist_ok=True)
                (folder_of_harness / "files" / name).write_text("fresh")
            fill_own_folder(folder, folder_of_harness / "files", "replay.json", {})

    for changes in count():
        folder = tmp_path / str(changes)
        mine = {}
        if earlier:
            record(earlier, folder)
            mine = {"mine.txt": "mine"}
            (folder / "mine.txt").write_text("mine")
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
            die_after(changes, patch)
            record(["client/a.sqlog", "router/a.pcap"], folder)
            break
        record(["client/c.sqlog"], folder)
        report = '{\n "artefacts": [\n  "client"\n ]\n}\n'
        assert contents(folder) == {"client/c.sqlog": "fresh", "replay.json": report, **mine}
    assert changes > 5


def test_a_report_that_names_a_path_is_nobodys_and_removes_nothing(replay: Any, tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside.txt"
    folder.mkdir()
    outside.write_text("mine")
    for name in ("../outside.txt", "..", ".", "", "/etc", "a/b", 7):
        (folder / "replay.json").write_text(json.dumps({"artefacts": [name]}))
        assert "no command wrote this" in replay(folder, "client.pcap").refusal()
        assert outside.read_text() == "mine"
        assert list(contents(folder)) == ["replay.json"]
