"""The packages that each package may import: each import is one that the table allows.

Names are those of the folders; as imports they stand within the package `fecbench`.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from tests.support.modules import MODULES, OURS, imports, is_within

EVERYWHERE = {
    "fecbench.caches",
    "fecbench.checkout",
    "fecbench.complaint",
    "fecbench.documents",
    "fecbench.errors",
    "fecbench.hints",
    "fecbench.lazy",
    "fecbench.looks",
    "fecbench.quantities",
    "fecbench.unpacking",
    "fecbench.whole_files",
}

# What each room may import of ours besides itself; a room is a package or a single module.
ROOMS = {
    "fecbench": {"results"},
    "dropper": set[str](),
    "topologies": set[str](),
    "designs": set[str](),
    "results": set[str](),
    "runners.refusal": set[str](),
    "runners.probe": set[str](),
    "runners.scratch": set[str](),
    "runners.options": {"runners.refusal"},
    "runners.authority": {"runners.refusal"},
    "runners.sandbox": {"runners.refusal"},
    "runners.implementations": {
        *("runners.refusal", "runners.options", "runners.probe", "runners.sandbox", "runners.scratch")
    },
    "runners.tasks": {"dropper", "topologies"},
    "runners.workloads": {"runners.refusal", "runners.options", "runners.tasks", "topologies"},
    "runners.trial": {
        *("dropper", "topologies", "results.store.records"),
        *(
            "runners.refusal",
            "runners.sandbox",
            "runners.implementations",
            "runners.tasks",
            "runners.workloads",
        ),
    },
    "runners.calibration": {
        *("dropper", "topologies"),
        *("runners.refusal", "runners.sandbox", "runners.tasks", "runners.trial"),
    },
    "runners.engines": {
        *("results.store.records", "runners.refusal", "runners.sandbox", "runners.scratch"),
        *("runners.implementations", "runners.tasks", "runners.trial", "runners.workloads"),
    },
    "runners.campaign": {
        *("designs", "dropper", "results.store", "topologies"),
        "results.analysis.deciding",  # where a campaign may stop
        "results.analysis.trial_course",  # what a replay recorded, to be drawn
        *("runners.refusal", "runners.probe", "runners.implementations", "runners.workloads"),
        *("runners.sandbox", "runners.tasks", "runners.trial", "runners.calibration", "runners.engines"),
        "runners.scratch",  # whose lock says that a claimant lives
    },
    "runners.hunt": {
        *("designs", "results.store", "results.metrics", "results.analysis", "topologies"),
        *("runners.refusal", "runners.implementations", "runners.tasks", "runners.engines"),
        "runners.campaign",
    },
    "runners.paths": {"dropper", "topologies"},
    "runners.own_network": {
        *("designs", "results.advice", "results.analysis", "results.store"),
        *("runners.paths", "runners.refusal", "runners.implementations", "runners.campaign"),
        *("runners.engines", "runners.tasks"),
    },
    "runners.cluster": {
        *("designs", "dropper", "results.store", "topologies"),
        *("runners.refusal", "runners.sandbox", "runners.scratch", "runners.implementations"),
        *("runners.tasks", "runners.trial", "runners.engines", "runners.campaign"),
        "runners.authority",
    },
    "runners.field": {
        *("results.store.records", "topologies", "runners.authority", "runners.refusal", "runners.probe"),
        *("runners.sandbox", "runners.scratch", "runners.implementations", "runners.workloads"),
        *("runners.tasks", "runners.trial", "runners.engines"),
    },
    "runners.conformance": {
        *("topologies", "results.store.records", "runners.refusal", "runners.sandbox", "runners.tasks"),
        *("runners.implementations", "runners.workloads", "runners.trial", "runners.engines"),
        "runners.campaign.self_check",  # how a simulator is played twice
    },
    "runners.machine": {
        *("dropper", "topologies", "runners.refusal", "runners.probe", "runners.sandbox"),
        *("runners.implementations", "runners.workloads", "runners.trial", "runners.conformance"),
    },
    "runners.commands": {"designs", "dropper", "fecbench", "results", "runners", "topologies"},
    "bench": {"designs", "dropper", "results", "runners", "topologies"},
}
# Inside results, too: what is read knows nothing of how it is drawn, and nobody but the report of commands.
INSIDE_RESULTS = {
    "results.metrics": {"results.store"},
    "results.store": set[str](),
    "results.analysis": {"results.store", "results.metrics"},
    "results.figures": {*("results.store", "results.metrics", "results.analysis", "results.history")},
    "results.papers.finding_pages": {"results.papers", "results.reading"},
    "results.papers.notebook": {"results.figures", "results.papers", "results.reading"},
    "results.papers": {"results.store", "results.metrics", "results.analysis", "results.figures"},
    "results.report": {
        *("results.store", "results.metrics", "results.analysis", "results.figures", "results.papers"),
        "results.gate",  # the page of two builds begins with their verdict
    },
    "results.dictionary": {"results.store", "results.metrics"},
    "results.gate": {"results.store", "results.metrics", "results.analysis"},
    "results.history": set[str](),
    "results.reading": {"results.store", "results.metrics", "results.analysis", "results.plotting"},
    "results.plotting": {*("results.store", "results.metrics", "results.analysis", "results.figures")},
}
ONLY_COMMANDS = {"typer", "rich", "click"}
DRAWING = {"jinja2", "matplotlib", "results.figures"}


def room_of(module: str, rooms: dict[str, set[str]]) -> str | None:
    return next((room for room in rooms if is_within(module, room)), None)


def strangers(module: str, path: Path, rooms: dict[str, set[str]], allowed_names: set[str]) -> set[str]:
    """The imports, among modules `known`, that the module's room does not allow."""
    room = room_of(module, rooms)
    if room is None:
        return set()
    allowed = rooms[room] | EVERYWHERE | {room}
    ours = {name for name in imports(path) if name in allowed_names}
    return {
        name
        for name in ours
        if not any(is_within(name, prefix) or is_within(prefix, name) for prefix in allowed)
    }


@pytest.mark.parametrize(
    ("rooms", "within"), [(ROOMS, sorted(OURS)), (INSIDE_RESULTS, ["results"])], ids=["all", "results"]
)
def test_a_module_imports_only_what_its_room_may_know(rooms: dict[str, set[str]], within: list[str]) -> None:
    allowed_names = {name for name in MODULES if any(is_within(name, part) for part in within)}
    unknown = {name: strangers(name, path, rooms, allowed_names) for name, path in MODULES.items()}
    assert {name: imported for name, imported in unknown.items() if imported} == {}


def known_by(room: str, rooms: dict[str, set[str]]) -> set[str]:
    """Return the rooms of the table that a room may know, themselves or a part."""
    allowed = {name for name in rooms[room] if not is_within(name, room) and not is_within(room, name)}
    return {other for other in rooms for name in allowed if is_within(name, other) or is_within(other, name)}


@pytest.mark.parametrize("rooms", [ROOMS, INSIDE_RESULTS], ids=["all", "results"])
def test_no_room_may_know_itself_through_others(rooms: dict[str, set[str]]) -> None:
    knows = {room: known_by(room, rooms) for room in rooms}
    for _ in rooms:
        knows = {room: direct.union(*(knows[other] for other in direct)) for room, direct in knows.items()}
    assert [room for room, reachable in knows.items() if room in reachable] == []


def test_only_commands_know_the_terminal() -> None:
    others = {
        name: {imported.partition(".")[0] for imported in imports(path)} & ONLY_COMMANDS
        for name, path in MODULES.items()
        if not is_within(name, "runners.commands") and not is_within(name, "bench")
    }
    assert {name: imported for name, imported in others.items() if imported} == {}


def test_a_report_is_collected_without_what_draws_it() -> None:
    """Papers are left out: their claims stand beside their figures. So are the figures that a notebook asks
    a campaign for."""
    for module in reached("results.report.collecting", without={"results.papers", "results.plotting"}):
        drawing = {name for name in imports(MODULES[module]) for prefix in DRAWING if is_within(name, prefix)}
        assert drawing == set(), module


def reached(module: str, without: set[str]) -> set[str]:
    """The module, and all of ours that it and those import."""
    imported, new = set[str](), {module}
    while new:
        imported |= new
        new = {name for prefix in new for name in imports(MODULES[prefix]) if name in MODULES} - imported
        new = {name for name in new if not any(is_within(name, prefix) for prefix in without)}
    return imported


def test_nothing_in_the_room_of_commands_imports_a_command() -> None:
    line = "runners.commands.command_line"
    inside = {name for name in MODULES if is_within(name, "runners.commands")}
    commands = {name for name in inside if MODULES[name].parent.name == "commands"} - {line}
    for module in inside:
        assert imports(MODULES[module]) & (commands - {module}) == set(), module


def test_every_module_has_a_room() -> None:
    assert [name for name in MODULES if room_of(name, ROOMS) is None and name != "runners"] == []


def test_notebooks_know_results_alone() -> None:
    for notebook in (REPOSITORY / "notebooks").glob("*.ipynb"):
        text = notebook.read_text()
        assert not any(
            f"fecbench.{name}" in text or f"fecbench import {name}" in text for name in OURS - {"results"}
        )


def homonyms(module: str) -> set[str]:
    """Return the modules of one name among a module and those that it imports.

    A command carries out what has its name, a package may have a module of its name, and all workloads have
    a form.
    """
    ours = {name for name in {module} | imports(MODULES[module]) if name in MODULES}
    ours = {name for name in ours if not is_within(name, "runners.commands") and not name.endswith(".form")}
    return {
        one
        for one in ours
        for other in ours - {one}
        if one.rpartition(".")[2] == other.rpartition(".")[2]
        and not is_within(one, other)
        and not is_within(other, one)
    }


def test_no_module_meets_two_of_one_name() -> None:
    assert {module: names for module in MODULES if (names := homonyms(module))} == {}


ROOMS_ALIKE = ("results.papers.", "runners.workloads.")
"""Each paper and each workload has a room, and all of these have files of the same names."""

IN_SEVERAL_FOLDERS = {
    *("arguments", "arms", "base", "campaign", "claims", "course", "crosscheck", "differences", "error"),
    *("estimates", "judging", "links", "loopback", "multipath", "names", "network", "programs", "ranges"),
    *("rates", "reading", "record", "segments", "table", "trust"),
}
"""Names that files of several folders have, none of which a reader meets beside another. May only shrink."""


def folders_by_file_name() -> dict[str, list[str]]:
    """Return, by the name of a file, the folders at the top in which it is, once for each such file.

    A command carries out what has its name. Rooms alike count as one.
    """
    files: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        is_command = path.parent.name == "commands" and module.startswith("runners.")
        if not path.stem.startswith("__") and not is_command:
            alike = next((rooms for rooms in ROOMS_ALIKE if module.startswith(rooms)), "")
            files[path.stem].add(f"{alike}{path.stem}" if alike else module)
    return {name: sorted(file.partition(".")[0] for file in places) for name, places in files.items()}


def test_a_file_name_is_in_a_folder_once_and_in_several_only_where_it_is_listed() -> None:
    folders = folders_by_file_name()
    assert {name for name, places in folders.items() if len(places) > len(set(places))} == set()
    assert {name for name, places in folders.items() if len(places) > 1} == IN_SEVERAL_FOLDERS
