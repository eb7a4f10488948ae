"""The folders with implementations, and the users of a broken one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.runners.implementations import finding, implementation
from fecbench.runners.implementations.finding import OWN, VARIABLE, Implementations, ours, search_path
from fecbench.runners.implementations.implementation import IMPLEMENTATIONS, Implementation
from fecbench.runners.refusal import Refusal
from tests.support.refusals import refusal_of


@pytest.fixture(autouse=True)
def _no_folders_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def add(folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """Adds the example under another name to a folder, and returns that."""
    text = (folder / "impl.toml").read_text()

    def add(root: str, name: str, before: str = "", after: str = "") -> Path:
        added = tmp_path / root / name
        added.mkdir(parents=True)
        (added / "impl.toml").write_text(text.replace('"example"', f'"{name}"').replace(before, after))
        return added.parent

    return add


def test_the_search_begins_here_and_goes_on_with_what_is_given_and_then_with_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    for path in (one, two, three):
        path.mkdir()
    monkeypatch.setenv(VARIABLE, f"{two}::{three}:")
    assert search_path([one]) == (IMPLEMENTATIONS, one, two, three)


def test_a_folder_that_is_given_twice_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, f"{tmp_path}/one/../one:{IMPLEMENTATIONS}")
    assert search_path([Path("one"), tmp_path / "one"]) == (IMPLEMENTATIONS, tmp_path / "one")


def test_what_cannot_hold_implementations_is_refused_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folders, problem in {
        "nowhere": "must be a folder that holds folders with an impl.toml",
        "example/impl.toml": "must be a folder that holds folders with an impl.toml",
        "example": "is an implementation itself; give the folder that holds it",
    }.items():
        path = folder.parent / folders
        assert refusal_of(search_path, [path]) == f"--implementations: {path}: {problem}"
        with monkeypatch.context() as environment:
            environment.setenv(VARIABLE, str(path))
            assert refusal_of(search_path, []) == f"{VARIABLE}: {path}: {problem}"


def test_an_implementation_is_found_in_any_of_the_folders(add: Callable[..., Path]) -> None:
    available = Implementations([add("one", "first"), add("two", "second")])
    assert available.names() == ["first", "second"]
    assert available.find("second", "x").folder == available.roots[1] / "second"


def test_an_unknown_implementation_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(Refusal, match=r"^design\.toml: there is no implementation 'rquick'; did you mean"):
        ours().find("rquick", "design.toml")


def test_a_name_in_two_folders_is_refused_with_both_where_it_is_used(add: Callable[..., Path]) -> None:
    one, two = add("one", "same"), add("two", "same")
    add("two", "other")
    available = Implementations([one, two])
    clash = f"implementation 'same' is in several folders: {one}/same and {two}/same; rename all but one"
    with pytest.raises(Refusal) as refusal:
        available.find("same", "design.toml")
    assert str(refusal.value) == f"design.toml: {clash}"
    assert available.problem("same") == clash
    assert available.find("other", "design.toml").declaration.name == "other"


def test_a_broken_implementation_is_refused_where_it_is_used_and_disturbs_no_other(
    add: Callable[..., Path],
) -> None:
    root = add("one", "broken", 'title = "An example"', "title = 3")
    add("one", "sound")
    available = Implementations([root])
    assert isinstance(available.find("sound", "x"), Implementation)
    with pytest.raises(Refusal, match=rf"^x: {root}/broken/impl\.toml: title = 3: "):
        available.find("broken", "x")
    assert available.problem("sound") is None
    assert str(available.problem("broken")).startswith(f"{root}/broken/impl.toml: title = 3: ")
    assert {name: type(entry) for name, entry in available.all().items()} == {
        "broken": Refusal,
        "sound": Implementation,
    }


def test_each_impl_toml_is_read_once_and_only_when_it_is_needed(
    add: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = add("one", "first")
    add("one", "second", "[options.scheme]", "[options.scheme")
    read = []

    def load(folder: Path) -> Implementation:
        read.append(folder.name)
        return implementation.load(folder)

    monkeypatch.setattr(finding, "load", load)
    available = Implementations([root])
    for _ in range(3):
        available.find("first", "x")
    assert read == ["first"]
    for _ in range(3):
        available.all()
        available.problem("second")
    assert read == ["first", "second"]


def test_every_implementation_here_can_be_read() -> None:
    for name in OWN:
        here = ours().find(name, "tests")
        if here.declaration.contract == "interop":
            continue
        assert here.options({}, "defaults")
        assert (here.declaration.fec is None) == (here.declaration.transport == "tcp")
