"""`fecbench doctor`: what this machine needs to run trials, what it lacks, and the command that mends it."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Annotated

import typer

from runners.campaign.provenance import DROPPER, WIRE
from runners.implementations.finding import ours
from runners.implementations.toolchains import TOOLCHAINS
from runners.probe import output_of
from runners.trial.isolation import CLONE_NEWNET, IsolationError, run_isolated, unshare

PROBE_LIMIT_S = 20.0


@dataclass(frozen=True)
class Need:
    """One thing that this machine has, or lacks. `mend` is the command that mends it."""

    name: str
    good: bool
    found: str
    mend: str = ""
    required: bool = True


def needs() -> Iterator[Need]:
    """All needs, the cheap ones first."""
    yield Need("root", os.geteuid() == 0, f"uid {os.geteuid()}", "sudo -s")
    yield Need("Linux", platform.system() == "Linux", platform.release(), "use a Linux machine")
    yield from _tools()
    yield from _python()
    yield from _built()
    yield from _kernel_features()


# Tools: what must be there, how it tells its version, and the Debian package that brings it.
TOOLS = [
    ("mnexec", ["mnexec", "-v"], "mininet"),
    ("ip", ["ip", "-V"], "iproute2"),
    ("tc", ["tc", "-V"], "iproute2"),
    ("ethtool", ["ethtool", "--version"], "ethtool"),
    ("clang", ["clang", "--version"], "clang"),
    ("make", ["make", "--version"], "make"),
    ("gcc", ["gcc", "--version"], "gcc"),
]
OPTIONAL_TOOLS = [("tcpdump", ["tcpdump", "--version"], "tcpdump")]


def _tools() -> Iterator[Need]:
    for required, tools in ((True, TOOLS), (False, OPTIONAL_TOOLS)):
        for name, version, package in tools:
            found = shutil.which(name) is not None
            said = (output_of(version) or "present").splitlines()[0] if found else "not found"
            yield Need(name, found, said, f"apt-get install {package}", required)
    for name, toolchain in TOOLCHAINS.items():
        yield Need(
            name, toolchain.is_recent, toolchain.found() or "not found", toolchain.mend, required=False
        )


def _python() -> Iterator[Need]:
    yield Need("python", True, platform.python_version())
    try:
        found, good = f"version {metadata.version('mininet')}", True
    except metadata.PackageNotFoundError:
        found, good = "not importable from this environment", False
    yield Need("mininet for Python", good, found, "apt-get install mininet && make build")


def _built() -> Iterator[Need]:
    programs = {"dropper": DROPPER, "wire": WIRE}
    known = ours()
    for name in known.names():
        for program in known.find(name, "doctor").programs():
            programs[f"{name} endpoint"] = program
    for name, program in programs.items():
        good = os.access(program, os.X_OK)
        yield Need(name, good, "built" if good else "not built", "make build")


def _command(*arguments: str) -> None:
    """Run a command of a probe; what it says on failure is what the probe says."""
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(said[-1] if said else f"{arguments[0]} ended with {done.returncode}")


def _make_veth() -> None:
    _command("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")


def _make_tap() -> None:
    _command("ip", "tuntap", "add", "dev", "probe2", "mode", "tap")


def _attach_dropper() -> None:
    """clsact, the verifier, bpf_spin_lock and the maps, all at once, with the real program."""
    _make_veth()
    _command(str(DROPPER), "attach", "--dev", "probe0", "--ingress", "--model", "uniform", "--p", "0.5")


def _add_netem() -> None:
    _make_veth()
    _command("tc", "qdisc", "add", "dev", "probe0", "root", "netem", "delay", "1ms")


def _take_real_time_priority() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def _set_nothing() -> None:
    unshare(CLONE_NEWNET, "network namespace")


FEATURES: list[tuple[str, Callable[[], None], str, bool]] = [
    ("PID, mount and network namespaces", _set_nothing, "run outside of a restricted container", True),
    ("veth", _make_veth, "use a kernel with CONFIG_VETH", True),
    ("TUN/TAP", _make_tap, "modprobe tun, or use a kernel with CONFIG_TUN", True),
    ("clsact, BPF and spin locks", _attach_dropper, "use a kernel with NET_CLS_ACT and NET_CLS_BPF", True),
    ("real-time priority", _take_real_time_priority, "run where CAP_SYS_NICE is granted", False),
    ("netem", _add_netem, "modprobe sch_netem; without it use --link wire", False),
]


def _kernel_features() -> Iterator[Need]:
    """Each feature is tried for real, in namespaces that end with the probe."""
    for name, probe, mend, required in FEATURES:
        problem = "needs root to find out" if os.geteuid() != 0 else _problem_of(probe)
        yield Need(name, not problem, problem or "works", mend, required)


def _problem_of(probe: Callable[[], None]) -> str:
    def answer() -> bytes:
        try:
            probe()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            return f"no: {error}".encode()
        return b"works"

    try:
        said = run_isolated(answer, PROBE_LIMIT_S).decode(errors="replace")
    except (IsolationError, OSError) as error:
        return f"no: {error}"
    return "" if said == "works" else said


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the needs as JSON.")] = False,
) -> int:
    """Say what this machine has and lacks; 1 when a trial could not run."""
    found = list(needs())
    able = all(need.good for need in found if need.required)
    if as_json:
        print(json.dumps({"able": able, "needs": [asdict(need) for need in found]}, indent=1))
    else:
        for need in found:
            print(line_of(need))
        print("trials can run" if able else "trials cannot run: see what is MISSING above")
    return 0 if able else 1


def line_of(need: Need) -> str:
    """One line: good, or what is missing and what mends it."""
    if need.good:
        return f"good     {need.name}: {need.found}"
    return f"{'MISSING' if need.required else 'absent '}  {need.name}: {need.found}; mend: {need.mend}"
