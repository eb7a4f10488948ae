"""A hostile scheduler or worker runs nothing in the process that runs a campaign."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from fecbench.checkout import REPOSITORY
from fecbench.runners.cluster import address, joint_run
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.joint_run import Invitation, SchedulerGone
from fecbench.runners.cluster.messages import CALLS, Answer, Outcome
from fecbench.runners.engines.engine import EngineError
from fecbench.runners.sandbox import fence, kernel
from tests import ordinary
from tests.runners.cluster.conftest import join_to, messenger_of
from tests.runners.cluster.test_cluster import papers, scheduler  # noqa: F401 - fixtures

PASSWORD = "s3cret"


# Ends the process in which it is unpickled, with what it can read as the last words.
STEAL = """
import os, sys
def words(path):
    try: return open(path).read()
    except OSError as error: return type(error).__name__
environment = f"/proc/{{os.getppid()}}/environ"
print("got:", words({pgpass!r}), words(environment), file=sys.stderr, flush=True)
os._exit(1)
"""
DRIVER = """
import sys
from pathlib import Path
from fecbench.runners.cluster import address
from fecbench.runners.cluster.joint_run import Invitation, SchedulerGone
from tests.runners.cluster.conftest import join_to
from tests.runners.cluster.test_hostile import answer_of
with Invitation(address.place({scheduler!r}, Path({papers!r}), False), join_to()) as invitation:
    try:
        answer_of(invitation)
    except SchedulerGone as gone:
        print(gone)
"""


@pytest.fixture
def marks() -> Iterator[Path]:
    """A folder that everybody may write to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def touching(marks: Path) -> str:
    """A program that leaves a file named after its process, with the passwords of its environment."""
    words = "[value for name, value in os.environ.items() if name.startswith('PG')]"
    return f"import os\nopen({str(marks)!r} + '/' + str(os.getpid()), 'w').write(str({words}))"


@contextlib.contextmanager
def hostile_worker(scheduler: str, papers: Path, kind: str, program: str) -> Iterator[None]:  # noqa: F811
    command = [sys.executable, "-m", "tests.runners.cluster.hostile_worker", scheduler, papers, kind, program]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"connected\n"
            yield
        finally:
            process.kill()


def answer_of(invitation: Invitation) -> Answer:
    """Return the answer of the only worker that is there."""
    while True:
        for news in invitation.news(120):
            if isinstance(news, Outcome):
                return news.answer


@pytest.mark.parametrize("kind", ["result", "error"])
def test_what_a_worker_pickles_is_not_unpickled_by_whoever_runs_a_campaign(
    scheduler: str,  # noqa: F811
    papers: Path,  # noqa: F811
    marks: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with (
        hostile_worker(scheduler, papers, kind, touching(marks)),
        Invitation(address.place(scheduler, papers, insecure=False), join_to()) as invitation,
    ):
        answer = answer_of(invitation)
    print(answer, list(marks.iterdir()))
    assert answer.state != "done"
    assert not (marks / str(os.getpid())).exists()
    # The worker's own Dask may unpickle it, too, and that process has the environment of this test.
    owned = [mark for mark in marks.iterdir() if mark.stat().st_uid != os.geteuid()]
    assert all(PASSWORD not in mark.read_text() for mark in owned)
    if os.geteuid() == 0 and kernel.may_administer():
        assert owned, "the messenger has not unpickled it either: this test shows nothing"


def test_whoever_runs_a_campaign_does_not_load_dask(scheduler: str, papers: Path) -> None:  # noqa: F811
    program = (
        "import sys; from pathlib import Path; from fecbench.runners.cluster import address; "
        "from fecbench.runners.cluster.joint_run import Invitation\n"
        "from tests.runners.cluster.conftest import join_to\n"
        "with Invitation(address.place(sys.argv[1], Path(sys.argv[2]), False), join_to()): pass\n"
        "print({'distributed', 'cloudpickle'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", program, scheduler, papers]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("set()\n", "")


@pytest.mark.skipif(not fence.is_offered(), reason="needs a kernel with Landlock")
def test_an_ordinary_users_messenger_reads_nothing_of_the_users_and_not_the_environment_of_its_starter(
    scheduler: str,  # noqa: F811
    papers: Path,  # noqa: F811
) -> None:
    """The messenger finds its files and its starter's environment by itself: it has the user's number."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Path(folder)
        (home / ".pgpass").write_text(f"*:*:*:*:{PASSWORD}")
        (home / ".pgpass").chmod(0o600)
        for paper in papers.iterdir():
            (home / paper.name).write_bytes(paper.read_bytes())
            (home / paper.name).chmod(0o600)
        if os.geteuid() == 0:
            for path in (home, *home.iterdir()):
                os.chown(path, ordinary.USER, ordinary.USER)
        steal = STEAL.format(pgpass=str(home / ".pgpass"))
        driver = DRIVER.format(scheduler=scheduler, papers=folder)
        with hostile_worker(scheduler, papers, "result", steal):
            told = subprocess.run(
                [*ordinary.command(), sys.executable, "-c", driver],
                cwd=REPOSITORY,
                env={**os.environ, "HOME": folder, "PGPASSWORD": PASSWORD},
                capture_output=True,
                text=True,
                timeout=120,
            )
    assert (told.stdout, told.stderr) == ("got: PermissionError PermissionError\n", "")


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call nobody before a messenger is started."""
    monkeypatch.setattr(address, "call", lambda _: None)


NONSENSE: list[tuple[str, str]] = [
    ("garbage", "it said b'well'"),
    ("pickles", r"it said b'\\x80\\x04\\x95'"),
    ("unknown", "it said b'{"),
    ("deep", r"it said b'\[\[\["),
    ("roars", "it said a line of more than 1048576 bytes"),
]


def invited(manner: str) -> Invitation:
    return Invitation(Place("tcp://ada:1", None), join_to(), messenger_of(manner))


@pytest.mark.usefixtures("beside")
def test_a_messenger_that_says_what_it_should_not_ends_the_campaign_in_one_line() -> None:
    for manner, what in NONSENSE:
        with (
            pytest.raises(EngineError, match=rf"the messenger to tcp://ada:1 is broken: {what}") as ended,
            invited(manner) as invitation,
        ):
            while True:
                list(invitation.news(1))
        assert len(str(ended.value).splitlines()) == 1, manner
        assert len(str(ended.value)) < 500, manner


@pytest.mark.usefixtures("beside")
def test_one_that_does_not_connect_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for manner, why in (("dies", "tcp://ada:1: enough"), ("silent", "not connected within")):
        monkeypatch.setattr(joint_run, "READY_S", 1.0 if manner == "silent" else 60.0)
        with pytest.raises(OSError, match=why):
            invited(manner).__enter__()


@pytest.mark.usefixtures("beside")
def test_one_that_ends_or_falls_silent_is_as_a_scheduler_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for manner, why in (("leaves", "and out"), ("deaf", "has been silent")):
        monkeypatch.setattr(joint_run, "SILENT_S", 0.5 if manner == "deaf" else 60.0)
        with pytest.raises(SchedulerGone, match=why), invited(manner) as invitation:
            while True:
                list(invitation.news(0.1))


def test_a_scheduler_has_a_worker_run_nothing_that_is_no_request() -> None:
    """The process that may be root reads lines, and each has the fields of a request alone."""
    for more in ("implementations", "program", "jobs", "keep"):
        with pytest.raises(ValidationError):
            CALLS.validate_python(
                {"kind": "asked", "number": 1, "join": {**join_to().model_dump(), more: "x"}}
            )
