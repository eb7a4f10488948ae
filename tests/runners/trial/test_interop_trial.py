"""Trials of endpoints by the QUIC interop runner's contract: a program of our own that is good, wrong or
hostile, as a command and in an OCI bundle, and real ones that nobody here wrote."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench.results.store.records import TrialKey
from fecbench.runners.campaign.record import record_of
from fecbench.runners.engines.engine import Finished
from fecbench.runners.engines.namespaces import NamespaceEngine
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import Implementation, load
from fecbench.runners.tasks.task import EndpointTask, InteropTask, Task
from fecbench.runners.trial.judge import Judgement, judge
from fecbench.topologies.link import LinkSettings
from fecbench.topologies.netem_link import netem_is_available
from tests.support import needs, processes, tasks

pytestmark = needs.TRIALS

TOY = Path(__file__).parent / "interop" / "toy.c"
SIZE_BYTES = 20_000
OWD_MS = 5
KEY = TrialKey("variant", "download", 0, 0)
SHELL = """#!/bin/sh
. /setup.sh
/wait-for-it.sh sim:57832 -s -t 30 || exit 1
/toy $CLIENT_PARAMS
exit $?
"""
"""Script with which images begin; it stays between the harness and the program."""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("toy") / "toy"
    subprocess.run(["cc", "-static", "-o", program, TOY], check=True)
    program.parent.chmod(0o755)
    return program


@pytest.fixture(scope="module")
def bundle(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An implementation whose programs are in a bundle: the toy, a shell with its libraries, and a script."""
    folder = tmp_path_factory.mktemp("bundles") / "bundled"
    root = folder / "unpacked" / "rootfs"
    for name in ("bin", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(toy, root / "toy")
    (root / "run_endpoint.sh").write_text(SHELL)
    (root / "run_endpoint.sh").chmod(0o755)
    for name in ("name", "hosts"):
        (root / "etc" / name).write_text("of the bundle")
    for file in ("/bin/sh", *_libraries("/bin/sh")):
        copied = root / file.lstrip("/")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(file).resolve(), copied)
    write_configuration(folder, ["/run_endpoint.sh"])
    return folder


def _libraries(program: str) -> list[str]:
    words = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split()
    return [word for word in words if word.startswith("/")]


def write_configuration(folder: Path, arguments: list[str], **process: Any) -> None:
    process = {"args": arguments, "env": ["PATH=/bin", "OF_BUNDLE=yes"], "cwd": "/", **process}
    configuration = {"ociVersion": "1.0.2", "process": process, "root": {"path": "rootfs"}}
    (folder / "unpacked" / "config.json").write_text(json.dumps(configuration))
    (folder / "impl.toml").write_text(
        f'name = "{folder.name}"\ntitle = "A bundle"\ncontract = "interop"\nworkloads = ["download"]\n'
        '[interop]\nbundle = "unpacked"\n'
    )


def end(name: str, env: dict[str, str] | None = None, testcase: str = "http3") -> EndpointTask:
    return EndpointTask(
        implementation=name, options={}, interop=InteropTask(testcase=testcase, env=env or {})
    )


def task(client: EndpointTask, server: EndpointTask, timeout_s: float = 30, loss: float = 0.05) -> Task:
    settings, loss_model = LinkSettings.symmetric(10, OWD_MS), {"model": "uniform", "p": loss}
    workload = {"name": "download", "size_bytes": SIZE_BYTES}
    return tasks.task(
        tasks.link(settings, loss_model, late_bound_us=10_000_000),
        tasks.pair(client=client, server=server, workload=workload),
        seeds={"content": 2**63 + 5, "internet/up": 1, "internet/down": 2},
        timeout_s=timeout_s,
    )


def run(trial_task: Task, engine: NamespaceEngine) -> tuple[Finished, Judgement]:
    with engine:
        (finished,) = engine.run([(KEY, trial_task)])
    return finished, judge(trial_task, finished.outcome)


def run_toy(
    toy: Path, client: EndpointTask | None = None, timeout_s: float = 30, **changed: Any
) -> tuple[Finished, Judgement]:
    """A trial of the program itself."""
    commands: Any = {"toy": {"client": [str(toy)], "server": [str(toy)]}}
    trial_task = task(client or end("toy"), end("toy"), timeout_s).model_copy(update=changed)
    return run(trial_task, NamespaceEngine(1, commands, {"toy": toy.parent}))


def of(implementation: Implementation) -> NamespaceEngine:
    name, bundle = implementation.declaration.name, implementation.bundle
    commands: Any = {name: {role: implementation.command(role) for role in ("client", "server")}}
    return NamespaceEngine(1, commands, {name: implementation.folder}, {name: bundle} if bundle else None)


def check_times(finished: Finished) -> None:
    """Check the times: for each kilobyte a request goes up and an answer comes down, one after another."""
    dct_s = finished.outcome.endpoints["client"].metrics["dct_s"]  # type: ignore[index]
    assert SIZE_BYTES / 1000 * 2 * OWD_MS / 1000 <= dct_s <= finished.outcome.client_s


TELLING = """#!/bin/sh
echo '{"metrics": {"packets_sent": 60, "source_sent": 50, "repair_sent": 10, "dct_s": 99},
       "series": {"cwnd": {"t_s": [0.1], "window_bytes": [12000]}}}' > /logs/fecbench.json
exec "${0%/*}/toy"
"""


@pytest.mark.parametrize(("fec", "state"), [(True, "ok"), (False, "failed")])
def test_what_a_stack_tells_of_itself_counts_and_repair_with_fec_off_fails(
    toy: Path, tmp_path: Path, fec: bool, state: str
) -> None:
    folder = tmp_path / "telling"
    folder.mkdir(mode=0o755)
    shutil.copy(toy, folder / "toy")
    program = folder / "telling.sh"
    program.write_text(TELLING)
    program.chmod(0o755)
    client = end("toy").model_copy(update={"fec": fec, "series": ["cwnd"]})
    commands: Any = {"toy": {"client": [str(program)], "server": [str(program)]}}
    finished, judgement = run(task(client, client), NamespaceEngine(1, commands, {"toy": folder}))
    assert judgement.state == state, judgement.reason
    if state == "failed":
        assert "FEC is off, but repair_sent = 10" in judgement.reason
        return
    check_times(finished)
    for role in ("client", "server"):
        outcome = finished.outcome.endpoints[role]
        assert outcome.metrics is not None
        assert outcome.metrics["source_sent"] == 50
        assert outcome.series == {"cwnd": b"t_s,window_bytes\n0.1,12000.0\n"}


@pytest.mark.parametrize("backend", ["wire", "netem"])
def test_what_the_client_downloads_is_verified_and_timed_by_the_harness(toy: Path, backend: str) -> None:
    if backend == "netem" and not netem_is_available():
        pytest.skip("needs sch_netem")
    finished, judgement = run_toy(toy, backend=backend)
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert finished.outcome.droppers["internet"]["down"].counters.dropped > 0, "losses at its port"
    check_times(finished)
    assert_kept_of_an_invalid_trial(finished, succeeded=True)


@pytest.mark.parametrize(
    ("client", "state", "reason"),
    [
        (end("toy", {"WRONG": "1"}), "failed", "client succeeded, but /downloads/content has other content"),
        (end("toy", testcase="nobody-has-it"), "unsupported", "unsupported test case: nobody-has-it"),
        (end("toy", {"REQUESTED": "{{}}"}), "ok", ""),
    ],
)
def test_the_state_is_that_of_what_arrived(toy: Path, client: EndpointTask, state: str, reason: str) -> None:
    finished, judgement = run_toy(toy, client)
    assert judgement.state == state
    assert judgement.reason.startswith(reason)
    if state == "failed":
        assert_kept_of_an_invalid_trial(finished, succeeded=False)


def assert_kept_of_an_invalid_trial(finished: Finished, *, succeeded: bool) -> None:
    """Whether the content arrived."""
    record = record_of(finished, Judgement("invalid", "the endpoints were kept from running"))
    assert record.exits["client"] == 0
    assert record.exits["server"] != 0
    assert record.checks["endpoints_succeeded"] is succeeded


def test_a_client_that_leaves_nothing_has_failed(toy: Path) -> None:
    commands: Any = {"toy": {"client": ["/bin/true"], "server": [str(toy)]}}
    _, judgement = run(task(end("toy"), end("toy")), NamespaceEngine(1, commands, {"toy": toy.parent}))
    message = "client succeeded, but /downloads/content cannot be read: No such file or directory"
    assert (judgement.state, judgement.reason) == ("failed", message)


def test_a_server_that_ends_by_itself_has_failed() -> None:
    commands: Any = {"toy": {"client": ["/bin/true"], "server": ["/bin/true"]}}
    _, judgement = run(task(end("toy"), end("toy")), NamespaceEngine(1, commands))
    message = "server ended, and a server serves until it is asked to end"
    assert (judgement.state, judgement.reason) == ("failed", message)


LOOK = (
    "#!/bin/sh\n"
    '[ "$ROLE" = server ] && exec /run_endpoint.sh\n'
    'echo "$OF_BUNDLE $HOME $REQUESTS"; read -r line < /etc/name; echo "$line"\n'
    "while read -r line; do echo $line; done < /etc/hosts\n"
    "for path in /usr/bin/env /root /certs/priv.key /www/content /certs/ca.pem; do\n"
    '  [ -e $path ] && echo "sees $path"\ndone\nexec /run_endpoint.sh\n'
)


def test_a_bundle_runs_and_sees_what_the_contract_says_and_nothing_of_the_machine(bundle: Path) -> None:
    (bundle / "unpacked" / "rootfs" / "look.sh").write_text(LOOK)
    (bundle / "unpacked" / "rootfs" / "look.sh").chmod(0o755)
    write_configuration(bundle, ["/look.sh"])
    implementation = load(bundle)
    name = implementation.declaration.name
    finished, judgement = run(task(end(name), end(name)), of(implementation))
    assert (judgement.state, judgement.reason) == ("ok", "")
    check_times(finished)
    message = finished.outcome.endpoints["client"].stderr.splitlines()
    assert message == [
        "yes /logs https://server4:443/content",
        "of the bundle",
        "127.0.0.1 localhost",
        "10.0.2.2 server4 server server6 server46",
        "10.0.1.2 client4 client client6 client46",
        "sees /certs/ca.pem",
    ]


def test_a_hostile_bundle_reaches_nothing_beyond_its_trial(toy: Path, tmp_path: Path) -> None:
    """The bundle's mount points are links to the machine's files; it has a program of root's, and forks."""
    folder, outside = tmp_path / "hostile", tmp_path / "outside"
    root = folder / "unpacked" / "rootfs"
    root.mkdir(parents=True)
    outside.mkdir()
    for path in (outside, tmp_path, *tmp_path.parents[:3]):
        path.chmod(0o777 if path == outside else path.stat().st_mode | 0o055)
    for name in ("www", "downloads", "certs", "logs", "tmp", "proc", "dev", "sys", "setup.sh", ".old"):
        (root / name).symlink_to(outside)
    (root / "etc").symlink_to("/etc")
    (root / "outside").symlink_to(outside)
    for name in ("toy", "setuid"):
        shutil.copy(toy, root / name)
    (root / "setuid").chmod(0o4755)
    (root / "open").mkdir()
    (root / "open").chmod(0o777)
    write_configuration(folder, ["/toy"])
    before = [*sorted(Path("/etc").iterdir()), Path("/etc/hosts").read_bytes(), list_of_mounts()]
    implementation = load(folder)
    trial_task = task(end("hostile", {"HOSTILE": "1"}), end("hostile"))
    kept = tmp_path / "kept"
    with of(implementation) as engine:
        (finished,) = engine.run([(KEY, trial_task)])
        shutil.move(str(finished.folder), kept)
    judgement = judge(trial_task, finished.outcome)
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert (kept / "client" / "done").read_text() == "", "what worked of what it tried"
    assert [*outside.iterdir()] == [*(root / "open").iterdir()] == []
    assert before == [*sorted(Path("/etc").iterdir()), Path("/etc/hosts").read_bytes(), list_of_mounts()]
    assert processes.with_mark(str(root)) == {}


def list_of_mounts() -> list[str]:
    """Return the mounts, without those of named namespaces, which other tests may make meanwhile."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if not line.split()[4].startswith("/run/netns")]


@pytest.mark.slow
def test_one_that_forks_without_end_is_a_timeout_and_is_gone(toy: Path) -> None:
    _, judgement = run_toy(toy, end("toy", {"FORKS": "1"}), timeout_s=2)
    assert judgement.state == "timeout", judgement.reason
    assert processes.with_mark(str(toy)) == {}


def program_of(name: str) -> Implementation:
    """Return one of our implementations. Skips the test if its programs are missing, and says which."""
    implementation = ours().find(name, "tests")
    for path in implementation.missing_programs():
        pytest.skip(f"needs {path}: {implementation.build_with}")
    return implementation


@pytest.fixture
def real() -> Iterator[Any]:
    """Trials of programs that nobody here wrote."""

    def run_real(client: str, server: str, testcase: str) -> tuple[Finished, Judgement]:
        programs = {name: program_of(name) for name in (client, server)}
        commands: Any = {
            name: {role: one.command(role) for role in ("client", "server")} for name, one in programs.items()
        }
        ends = []
        for name, implementation in programs.items():
            interop = implementation.declaration.interop
            options = {key: option.default for key, option in implementation.declaration.options.items()}
            options |= {"scheme": "plain"} if name == "rquic" else {}
            expected = interop and InteropTask(testcase=testcase, params=interop.params_of("client"))
            ends.append(EndpointTask(implementation=name, options=options, interop=expected))
        trial_task = task(ends[0], ends[-1])
        return run(
            trial_task, NamespaceEngine(1, commands, {name: one.folder for name, one in programs.items()})
        )

    yield run_real


@pytest.mark.parametrize(
    ("client", "server", "testcase"),
    [
        ("quic-go", "ngtcp2", "http3"),
        ("ngtcp2", "quic-go", "http3"),
        ("quic-go", "rquic", "transfer"),
        ("rquic", "quic-go", "transfer"),
    ],
)
def test_programs_that_nobody_here_wrote_download(real: Any, client: str, server: str, testcase: str) -> None:
    finished, judgement = real(client, server, testcase)
    assert (judgement.state, judgement.reason) == ("ok", "")
    assert finished.outcome.droppers["internet"]["down"].counters.dropped > 0
    assert finished.outcome.endpoints["client"].metrics["dct_s"] > 2 * 2 * OWD_MS / 1000


@pytest.mark.parametrize("name", ["quic-go", "ngtcp2"])
def test_they_do_not_support_a_test_case_that_nobody_has(real: Any, name: str) -> None:
    _, judgement = real(name, name, "nobody-has-it")
    assert (judgement.state, judgement.reason) == ("unsupported", "unsupported test case: nobody-has-it")
