"""Needs of trials on this machine: which are met, which are not, and the command that mends each."""

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from fecbench.dropper.command import COMMAND
from fecbench.runners.conformance import simulator_trials
from fecbench.runners.implementations.finding import OWN, Implementations
from fecbench.runners.implementations.implementation import IMPLEMENTATIONS, Implementation, Lack
from fecbench.runners.implementations.toolchains import TOOLCHAINS
from fecbench.runners.probe import output_of
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import kernel
from fecbench.runners.sandbox.isolation import IsolationError, run_isolated
from fecbench.runners.trial import cgroup, confinement
from fecbench.runners.workloads import TOLD
from fecbench.topologies import tcp
from fecbench.topologies.programs import CLOCK, PROBER, WIRE

PROBE_LIMIT_S = 20.0
# Endpoints have no right to go beyond the system's limits. quic-go asks for 7 MiB.
SOCKET_BUFFER_AT_LEAST_BYTES, SOCKET_BUFFER_BYTES = 2 << 20, 7 << 20
CGROUP_LACKS = "no cgroup can be made: single processes of endpoints are limited, not all of a trial together"
CGROUP_MENDS = "run where the harness may make cgroups, such as outside of a container"


@dataclass(frozen=True)
class Need:
    """A thing that this machine has, or lacks."""

    name: str
    good: bool
    found: str
    mend: str = ""
    """The command, or the deed, that mends it."""
    required: bool = True
    """Whether no trial can run without it."""


def needs(implementations: Implementations) -> Iterator[Need]:
    """Yield all needs, the cheap ones first."""
    yield Need("root", os.geteuid() == 0, f"uid {os.geteuid()}", "sudo -s")
    yield Need("Linux", platform.system() == "Linux", platform.release(), "use a Linux machine")
    yield from _tools()
    yield from _python()
    yield from _built()
    yield from _implementations(implementations)
    yield from _simulators(implementations)
    yield from _kernel_features()
    yield from _congestion_controls()
    yield from _limits_of_endpoints()
    yield confinement_of_simulators()


@dataclass(frozen=True)
class Tool:
    """A program of the system, and the Debian package that brings it."""

    name: str
    package: str
    version: tuple[str, ...] = ("--version",)
    """The words with which it tells its version."""
    only_for: str = ""
    """Purpose of a tool without which trials run nevertheless."""


TOOLS = [
    Tool("mnexec", "mininet", ("-v",)),
    Tool("setpriv", "util-linux"),
    Tool("ip", "iproute2", ("-V",)),
    Tool("tc", "iproute2", ("-V",)),
    Tool("ethtool", "ethtool"),
    Tool("clang", "clang", only_for="building"),
    Tool("make", "make", only_for="building"),
    Tool("gcc", "gcc", only_for="building"),
    Tool("tcpdump", "tcpdump", only_for="replay"),
]


def _tools() -> Iterator[Need]:
    for tool in TOOLS:
        there = shutil.which(tool.name) is not None
        version = (output_of([tool.name, *tool.version]) or "present").splitlines()[0]
        state = f"{version if there else 'not found'}{_only(tool.only_for)}"
        yield Need(tool.name, there, state, f"apt-get install {tool.package}", required=not tool.only_for)
    for name, toolchain in TOOLCHAINS.items():
        state = f"{toolchain.version_text() or 'not found'}{_only('building')}"
        yield Need(name, toolchain.is_recent, state, toolchain.mend, required=False)


def _only(purpose: str) -> str:
    return f" (needed for {purpose} only)" if purpose else ""


def _python() -> Iterator[Need]:
    yield Need("python", True, platform.python_version())
    try:
        version, good = f"version {metadata.version('mininet')}", True
    except metadata.PackageNotFoundError:
        version, good = "not importable from this environment", False
    yield Need("mininet for Python", good, version, "apt-get install mininet && make build")


def _built() -> Iterator[Need]:
    for name, program in {"dropper": COMMAND, "wire": WIRE, "clock": CLOCK, "prober": PROBER}.items():
        good = os.access(program, os.X_OK)
        yield Need(name, good, "built" if good else "not built", "make build")


def _implementations(implementations: Implementations) -> Iterator[Need]:
    """Yield the state of each implementation. Trials run without those of others, and without a broken
    one."""
    for name, implementation in implementations.all().items():
        if isinstance(implementation, Refusal):
            mend = "correct it; only designs that use it are refused"
            yield Need(f"{name} endpoint", False, f"broken: {implementation}", mend, required=False)
            continue
        declared = implementation.declaration
        required = implementation.folder.parent == IMPLEMENTATIONS and name in OWN
        try:
            files = implementation.needed_files()
        except Refusal as refusal:  # of its bundle
            yield Need(f"{name} endpoint", False, str(refusal), "unpack its image again", required)
            continue
        for path in files:
            lack = implementation.lack_of(path)
            good = "built" if path.is_relative_to(implementation.folder) else "present"
            state, mend = (f"{path} {lack.problem}", lack.mend) if lack else (good, "")
            if lack and declared.on_demand:
                state += _build_of(implementation)
            # A line for each file; if there are several, each is named.
            which = f"{name} endpoint" if len(files) == 1 else f"{name} endpoint {path}"
            yield Need(which, lack is None, state, mend, required)


def _build_of(implementation: Implementation) -> str:
    """Return the needs of an implementation's build on demand, and which of them are missing."""
    needs, lacking = implementation.declaration.build_needs, implementation.lacking_for_build()
    words = [f"{need}, which is not installed" if need in lacking else need for need in needs]
    return f" (needed only by designs that use it; its build needs {' and '.join(words)})" if words else ""


def _simulators(implementations: Implementations) -> Iterator[Need]:
    """Yield whether each implementation runs trials in virtual time; the others work without it."""
    for name, implementation in implementations.all().items():
        if isinstance(implementation, Refusal):  # told already
            continue
        state, mend = _simulator_lacks(implementation) or ("plays trials, the same each time", "")
        yield Need(f"{name} simulator", not mend, state, mend, required=False)


def _simulator_lacks(implementation: Implementation) -> Lack | None:
    name, supported = implementation.declaration.name, implementation.declaration.workloads
    if implementation.declaration.simulator is None:
        mend = "give it one, as quic-impls/README.md says; --engine local takes it as it is"
        return Lack("none: it takes no part in trials in virtual time", mend)
    if lack := implementation.lack("virtual"):
        return lack
    sample = next((name for name in TOLD if name in supported), None)
    problem = simulator_trials.problem_of(implementation, sample) if sample else ""
    return Lack(problem, f"see fecbench implementations --check {name}") if problem else None


def _command(*arguments: str) -> None:
    """Run a command of a probe. Raises RuntimeError with the last line of its output when it fails."""
    process = subprocess.run(arguments, capture_output=True, text=True, timeout=PROBE_LIMIT_S)
    if process.returncode != 0:
        lines = (process.stderr or process.stdout).strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"{arguments[0]} ended with {process.returncode}")


def _make_veth() -> None:
    _command("ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1")


def _make_tap() -> None:
    _command("ip", "tuntap", "add", "dev", "probe2", "mode", "tap")


def _attach_dropper() -> None:
    """clsact, the verifier, atomic instructions and the maps, all at once, with the real program."""
    _make_veth()
    place = ["--dev", "probe0", "--ingress"]
    _command(str(COMMAND), "attach", *place, "--model", "uniform", "--p", "0.5")


def _add_netem() -> None:
    _make_veth()
    _command("tc", "qdisc", "add", "dev", "probe0", "root", "netem", "delay", "1ms")


def _make_subflows() -> None:
    """Configure subflows as for a client with two addresses. Raises OSError if the kernel has no Multipath
    TCP."""
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP).close()
    for command in tcp.subflows([("127.0.0.2", "lo")], 1):
        _command("ip", *command.split())


def _take_real_time_priority() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def _make_network_namespace() -> None:
    kernel.unshare(kernel.CLONE_NEWNET, "network namespace")


# Name, probe, mend, and whether trials need the feature.
FEATURES: list[tuple[str, Callable[[], None], str, bool]] = [
    (
        "PID, mount and network namespaces",
        _make_network_namespace,
        "run outside of a restricted container",
        True,
    ),
    ("veth", _make_veth, "use a kernel with CONFIG_VETH", True),
    ("TUN/TAP", _make_tap, "modprobe tun, or use a kernel with CONFIG_TUN", True),
    ("clsact and BPF", _attach_dropper, "use a kernel with NET_CLS_ACT and NET_CLS_BPF", True),
    ("real-time priority", _take_real_time_priority, "run where CAP_SYS_NICE is granted", False),
    (
        "Multipath TCP",
        _make_subflows,
        "use a kernel with CONFIG_MPTCP; sysctl net.mptcp.enabled=1",
        False,
    ),
    ("netem", _add_netem, "modprobe sch_netem; without it use --link wire", False),
]


def _kernel_features() -> Iterator[Need]:
    """Try each feature for real, in namespaces that end with the probe."""
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
        outcome = run_isolated(answer, PROBE_LIMIT_S).decode(errors="replace")
    except (IsolationError, OSError) as error:
        return f"no: {error}"
    return "" if outcome == "works" else outcome


def _congestion_controls() -> Iterator[Need]:
    """Yield the congestion controls of TCP. Users need no permission for one: topologies give it to their
    routes."""
    for name in ("reno", "cubic", "bbr"):
        there = name in tcp.controllers()
        state = "this kernel has it" if there else "this kernel has no such congestion control"
        mend = f"modprobe tcp_{name}, or use a kernel with CONFIG_TCP_CONG_{name.upper()}"
        yield Need(f"TCP {name}", there, state, mend, required=False)


def confinement_of_simulators() -> Need:
    free = confinement.why_simulators_are_free()
    mend = "run as root, or on a kernel with Landlock"
    return Need("confined simulators", not free, free or "in their own folders, without network", mend, False)


def _limits_of_endpoints() -> Iterator[Need]:
    """Yield the limits of endpoints, besides those of single processes, which always exist."""
    counted = {controller: place for place in cgroup.usable() for controller in place.controllers}
    for controller, counts in {"memory": "memory", "pids": "processes"}.items():
        state = f"counted below {counted[controller].folder}" if controller in counted else CGROUP_LACKS
        yield Need(f"limit of {counts}", controller in counted, state, CGROUP_MENDS, required=False)
    for name in ("rmem_max", "wmem_max"):
        limit = Path("/proc/sys/net/core", name)
        value = int(limit.read_text(encoding="utf-8")) if limit.is_file() else 0
        mend = f"sysctl -w net.core.{name}={SOCKET_BUFFER_BYTES}, and a line of it in /etc/sysctl.d"
        good, state = value >= SOCKET_BUFFER_AT_LEAST_BYTES, f"net.core.{name} is {value}"
        yield Need(f"socket buffers ({name})", good, state, mend, required=False)
