"""Places for control groups with limits, by what the kernel reports of a machine."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

import pytest

from fecbench.runners.trial import cgroup
from fecbench.runners.trial.cgroup import MEMORY_BYTES, PROCESSES, Place, places
from tests.waiting import wait_until

# As Debian 10 has them; the last is of systemd alone.
VERSION_1 = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,name=systemd
"""
# In a container, which sees its own cgroup as the root of the tree.
CONTAINER_1 = "35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"


def test_version_1_has_a_tree_for_each_controller() -> None:
    own = "9:name=systemd:/x\n8:pids:/\n4:memory:/user.slice/session-1\n"
    assert places(VERSION_1, own) == [
        Place(1, Path("/sys/fs/cgroup/memory/user.slice/session-1"), ("memory",)),
        Place(1, Path("/sys/fs/cgroup/pids"), ("pids",)),
    ]


def test_in_a_container_the_path_begins_where_the_tree_does() -> None:
    candidates = places(CONTAINER_1, "4:memory:/docker/1f\n")
    assert candidates == [Place(1, Path("/sys/fs/cgroup/memory"), ("memory",))]


def version_2(tree: Path) -> str:
    return f"35 23 0:32 / {tree} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_version_2_takes_the_nearest_cgroup_whose_children_are_counted(tmp_path: Path) -> None:
    slice_, scope = tmp_path / "user.slice", tmp_path / "user.slice/session-1.scope"
    scope.mkdir(parents=True)
    for folder, controllers in ((tmp_path, "cpu memory pids"), (slice_, "memory pids"), (scope, "")):
        (folder / "cgroup.subtree_control").write_text(f"{controllers}\n")
    assert places(version_2(tmp_path), "0::/user.slice/session-1.scope\n") == [
        Place(2, slice_, ("memory", "pids"))
    ]
    for folder in (tmp_path, slice_):
        (folder / "cgroup.subtree_control").write_text("hugetlb\n")
    assert places(version_2(tmp_path), "0::/user.slice/session-1.scope\n") == []


def test_a_place_has_limits_of_the_controllers_that_count_there() -> None:
    both = Place(2, Path("/x"), ("memory", "pids"))
    assert both.limits() == {"memory.max": MEMORY_BYTES, "memory.swap.max": 0, "pids.max": PROCESSES}
    assert Place(1, Path("/x"), ("pids",)).limits() == {"pids.max": PROCESSES}


def test_a_trial_may_have_more_processes_than_its_endpoints_can_start() -> None:
    from resource import RLIMIT_NPROC

    from fecbench.runners.sandbox.rights import LIMITS, USERS

    assert USERS * LIMITS[RLIMIT_NPROC] < PROCESSES


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for a tree of cgroups."""
    monkeypatch.setattr(cgroup, "usable", lambda: (Place(2, tmp_path, ("pids",)),))
    return tmp_path


def test_only_empty_cgroups_of_harnesses_are_removed_whoever_has_the_number_of_their_maker(
    place: Path,
) -> None:
    """The number of a process may be another's by now, or of another PID namespace."""
    result = subprocess.Popen([sys.executable, "-c", ""])
    result.wait()
    abandoned = [
        place / f"fecbench-{process}-abcd1234.77" for process in sorted((os.getpid(), result.pid), key=str)
    ]
    used = [place / f"fecbench-{process}-12345678.78" for process in (os.getpid(), result.pid)]
    of_others = place / f"fecbench-{result.pid}-of-somebody-else"
    for folder in (*abandoned, *used, of_others):
        folder.mkdir()
    for folder in used:
        (folder / "somebody").touch()  # it is not empty
    assert cgroup.remove_abandoned() == abandoned
    assert sorted(place.iterdir()) == sorted([*used, of_others])


def test_one_whose_processes_are_still_leaving_is_removed(place: Path) -> None:
    result = subprocess.Popen([sys.executable, "-c", ""])
    result.wait()
    abandoned = place / f"fecbench-{result.pid}-abcd1234.77"
    abandoned.mkdir()
    (abandoned / "somebody").touch()
    leaving = Timer(0.02, (abandoned / "somebody").unlink)
    leaving.start()
    assert cgroup.remove_abandoned() == [abandoned]
    leaving.join()


def test_of_a_harness_only_its_own_are_removed(place: Path) -> None:
    for name in ("fecbench-1-abcd1234.77", "fecbench-1-abcd12345.77", "fecbench-11-abcd1234.77"):
        (place / name).mkdir()
    cgroup.remove("fecbench-1-abcd1234")
    assert {path.name for path in place.iterdir()} == {"fecbench-1-abcd12345.77", "fecbench-11-abcd1234.77"}


def test_one_that_nobody_leaves_in_time_is_left_for_the_next_harness(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such an error took the place of the line that says who ended a command, where a machine was busy."""
    monkeypatch.setattr(cgroup, "REMOVE_LIMIT_S", 0.01)
    busy, empty = (place / f"fecbench-1-abcd1234.{number}" for number in (77, 78))
    for folder in (busy, empty):
        folder.mkdir()
    (busy / "somebody").touch()
    cgroup.remove("fecbench-1-abcd1234")
    (busy / "somebody").unlink()
    assert cgroup.remove_abandoned() == [busy]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes cgroups")
def test_where_none_can_be_made_there_is_none(tmp_path: Path) -> None:
    assert not cgroup._can_make(Place(1, tmp_path / "no-such-folder", ("pids",)))


real = pytest.mark.skipif(
    os.geteuid() != 0 or not cgroup.usable(), reason="needs root, and where it may make cgroups"
)
ELSEWHERE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Begins a command in PID and mount namespaces of its own, as a container has them; the cgroups are ours."""
STAYS = """
import sys
from fecbench.runners.trial import cgroup
cgroup.enter(sys.argv[1])
print("is there", flush=True)
sys.stdin.read()
"""


def begun(command: Sequence[str], *more: str) -> "subprocess.Popen[str]":
    """A program of ours that has said that it is there."""
    process = subprocess.Popen(
        [*command, sys.executable, "-c", *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline()
    return process


@real
@pytest.mark.parametrize("command", [(), ELSEWHERE], ids=["here", "another PID namespace"])
def test_a_cgroup_that_somebody_is_in_is_kept_and_removed_when_he_was_killed(
    command: tuple[str, ...],
) -> None:
    name = f"{cgroup.new_name()}.stays"
    folders = [place.folder / name for place in cgroup.usable()]
    with begun(command, STAYS, name) as process:
        assert not set(folders) & set(cgroup.remove_abandoned())
        assert all(folder.is_dir() for folder in folders)
        process.kill()
    wait_until(
        lambda: cgroup.remove_abandoned() is not None and not any(map(Path.exists, folders)), "its end"
    )


ENTERS = """
import os, subprocess, sys
from pathlib import Path
from fecbench.runners.trial import cgroup
limits, removed = cgroup.Place.limits, []
def removed_before(place):
    if len(removed) < 3 * len(cgroup.usable()):
        subprocess.check_call([*sys.argv[2:], sys.executable, "-c", '''
from fecbench.runners.trial import cgroup
cgroup.remove_abandoned()
'''])
        # A harness beside this test may have been faster: it counts that the cgroup is away, not by whom.
        removed.append(not (place.folder / sys.argv[1]).exists())
    return limits(place)
cgroup.usable()
cgroup.Place.limits = removed_before
cgroup.enter(sys.argv[1])
print(sum(removed), Path("/proc/self/cgroup").read_text().count(sys.argv[1]))
"""


@real
@pytest.mark.parametrize("command", [(), ELSEWHERE], ids=["here", "another PID namespace"])
def test_whoever_enters_a_cgroup_is_in_it_whoever_took_it_for_left_over_while_it_was_empty(
    command: tuple[str, ...],
) -> None:
    name = f"{cgroup.new_name()}.enters"
    entered = subprocess.run([sys.executable, "-c", ENTERS, name, *command], capture_output=True, text=True)
    places = len(cgroup.usable())
    assert (entered.stdout, entered.stderr) == (f"{3 * places} {places}\n", "")
