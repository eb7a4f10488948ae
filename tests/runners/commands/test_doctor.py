"""doctor tells what is good, and what is missing with the command that mends it."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fecbench.runners import machine
from fecbench.runners.commands import doctor
from fecbench.runners.implementations.finding import OWN, Implementations, ours
from fecbench.runners.machine import Need
from fecbench.runners.trial import cgroup
from fecbench.runners.trial.cgroup import Place
from fecbench.topologies import tcp
from tests.runners.engines.conftest import HERE
from tests.support.declarations import declare

FECBENCH = str(Path(sys.executable).parent / "fecbench")


def test_a_need_is_one_line() -> None:
    assert doctor.line_of(Need("x", True, "works")) == "good     x: works"
    assert doctor.line_of(Need("x", False, "no", "make x")) == "MISSING  x: no; mend: make x"
    assert doctor.line_of(Need("x", False, "no", "make x", required=False)).startswith("absent ")


def test_a_probe_that_fails_is_told_and_does_not_raise() -> None:
    def probe() -> None:
        raise OSError("not permitted")

    assert "not permitted" in machine._problem_of(probe)


def test_what_only_a_build_needs_is_not_required_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = ("clang", "gcc", "ip")
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name in absent else "/bin/x")
    tools = {need.name: need for need in machine._tools()}
    for name in ("clang", "gcc"):
        need, message = tools[name], "not found (needed for building only)"
        assert (need.good, need.found, need.required) == (False, message, False)
    assert tools["ip"].required


def test_limits_of_endpoints_are_told_and_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(1, Path("/sys/fs/cgroup/memory"), ("memory",))
    monkeypatch.setattr(cgroup, "usable", lambda: (place,))
    needs = {need.name: need for need in machine._limits_of_endpoints()}
    assert needs["limit of memory"].good
    assert not needs["limit of processes"].good
    assert not any(need.required for need in needs.values())


def test_small_socket_buffers_are_told_with_the_line_that_raises_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cgroup, "usable", lambda: ())
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "212992\n")
    need = {need.name: need for need in machine._limits_of_endpoints()}["socket buffers (rmem_max)"]
    assert (need.good, need.found) == (False, "net.core.rmem_max is 212992")
    assert need.mend.startswith("sysctl -w net.core.rmem_max=7340032")


def test_a_congestion_control_that_the_kernel_lacks_is_told_and_not_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tcp, "controllers", lambda: ["reno", "cubic"])
    needs = {need.name: need for need in machine._congestion_controls()}
    assert (needs["TCP reno"].good, needs["TCP cubic"].good, needs["TCP bbr"].good) == (True, True, False)
    assert needs["TCP bbr"].mend.startswith("modprobe tcp_bbr")
    assert not any(need.required for need in needs.values())


def test_the_prober_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PROBER", Path("/no/prober"))
    (need,) = [need for need in machine._built() if need.name == "prober"]
    assert (need.good, need.required, need.mend) == (False, True, "make build")


ENDS = {"server": ["server"], "client": ["/bin/sh", "client.sh"]}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of implementations: `mine` has two programs, of which one is missing; `broken` is none."""
    declare(tmp_path / "mine", **ENDS)
    (declare(tmp_path / "broken") / "impl.toml").write_text("name = 3\n")
    return tmp_path


def needs_of(folder: Path) -> dict[str, Need]:
    """Return the needs of the endpoints of a folder, by name."""
    return {need.name: need for need in machine._implementations(Implementations([folder]))}


def test_each_program_of_an_implementation_has_a_line(mine: Path) -> None:
    needs = needs_of(mine)
    assert needs["mine endpoint /bin/sh"] == Need("mine endpoint /bin/sh", True, "present", required=False)
    missing = needs[f"mine endpoint {mine}/mine/server"]
    assert (missing.good, missing.found) == (False, f"{mine}/mine/server is missing")
    assert missing.mend == f"python -m fecbench.runners.implementations.build {mine}"


def test_a_broken_implementation_is_named_and_does_not_keep_trials_from_running(mine: Path) -> None:
    need = needs_of(mine)["broken endpoint"]
    assert (need.good, need.required) == (False, False)
    assert need.found.startswith(f"broken: {mine}/broken/impl.toml: name = 3: ")


def test_endpoints_of_this_project_are_required() -> None:
    needs = {need.name.split()[0]: need for need in machine._implementations(ours())}
    assert all(needs[name].required for name in OWN)
    assert not needs["quic-go"].required, "only designs that use it need it"


def test_one_that_somebody_put_beside_them_is_not_required(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "IMPLEMENTATIONS", mine)
    need = needs_of(mine)[f"mine endpoint {mine}/mine/server"]
    assert (need.good, need.required) == (False, False)


def test_of_one_that_is_built_on_demand_it_is_told_what_its_build_needs(tmp_path: Path) -> None:
    declare(tmp_path / "mine", **ENDS, build_needs=["sh", "no-such-tool"], on_demand=True)
    need = needs_of(tmp_path)[f"mine endpoint {tmp_path}/mine/server"]
    needed = "its build needs sh and no-such-tool, which is not installed"
    assert (need.good, need.required) == (False, False)
    assert need.found == f"{tmp_path}/mine/server is missing (needed only by designs that use it; {needed})"
    assert need.mend == f"python -m fecbench.runners.implementations.build --all {tmp_path}"


SIMULATORS = [
    ('default = "good"', 'default = "good"', "plays trials, the same each time", ""),
    ('default = "good"', 'default = "dies"', "ended with status 3", "fecbench implementations --check"),
    ('simulator = ["/usr/bin/python3", "simulator.py"]', "", "none: it takes no part", "--engine local"),
    ('simulator = ["/usr/bin/python3", ', 'simulator = ["gone", ', "gone is missing", "build"),
]


def test_of_each_implementation_it_says_whether_its_simulator_works(tmp_path: Path) -> None:
    declared = shutil.copytree(HERE / "made-up", tmp_path / "made-up") / "impl.toml"
    text = declared.read_text()
    for old, new, state, mend in SIMULATORS:
        declared.write_text(text.replace(old, new))
        (need,) = machine._simulators(Implementations((tmp_path,)))
        assert (need.name, need.good, need.required) == ("made-up simulator", not mend, False)
        assert state in need.found
        assert mend in need.mend


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_json_and_status_agree_and_without_the_tools_trials_cannot_run(
    fecbench_here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tools are missing with an empty PATH; the kernel is checked nevertheless."""
    for path in (os.environ["PATH"], str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        result = fecbench_here("doctor", "--json")
        document = json.loads(result.stdout)
        needs = document["needs"]
        assert document["able"] == all(need["good"] for need in needs if need["required"])
        assert result.returncode == (0 if document["able"] else 1)
        assert all(need["good"] or need["mend"] for need in needs)
    (mnexec,) = (need for need in needs if need["name"] == "mnexec")
    assert (mnexec["good"], mnexec["mend"]) == (False, "apt-get install mininet")


def test_folders_of_implementations_are_given_by_option_and_have_to_exist(
    mine: Path, fecbench_here: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for probes in ("_kernel_features", "_simulators"):
        monkeypatch.setattr(machine, probes, lambda *_: iter(()))
    result = fecbench_here("doctor", "--implementations", mine)
    assert f"absent   broken endpoint: broken: {mine}/broken/impl.toml: name = 3: " in result.stdout
    assert "good     mine endpoint /bin/sh: present" in result.stdout
    assert "good     rquic endpoint " in result.stdout
    refusal = fecbench_here("doctor", "--implementations", "/nowhere").refusal()
    assert refusal.startswith("fecbench: --implementations: /nowhere: must be a folder that holds folders")
