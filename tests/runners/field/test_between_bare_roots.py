"""Two machines with a bare Debian 12 each, and an emulated path between them.

Python is all that is installed there. The checkout, with its environment and its built programs, is mounted
read-only at its own path. Takes 0.6 GB and some minutes.
"""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.finding import ours
from fecbench.topologies.link import LinkSettings
from fecbench.topologies.topology import Host, build
from tests.support import needs
from tests.support.campaigns import only_campaign
from tests.support.designs import over_a_path
from tests.waiting import wait_until

NOQ = ours().find("noq-fec", "")
pytestmark = [*needs.TRIALS, needs.built(NOQ), pytest.mark.slow, pytest.mark.timeout(1200)]

BARE = str(REPOSITORY / "tests" / "bare.sh")
USER = "ordinary"
PORT = 4477
PACKAGES = "python3"
# The mount is of this command's namespace alone, and goes with it.
WITH_CHECKOUT = """
mount --bind "$2" "$1$2" && mount -o remount,bind,ro "$1$2"
bare=$3 root=$1; shift 3
exec "$bare" in "$root" "$@"
"""


@dataclass(frozen=True)
class Machine:
    """A root, at a host of a topology."""

    root: Path
    host: Host

    def command(self, user: str, *words: str) -> list[str]:
        """Return the command that runs another one there, in the user's home."""
        as_user = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"] if user != "root" else []
        mounted = ["unshare", "--mount", "sh", "-euc", WITH_CHECKOUT, "sh"]
        home = "/" + str(self.home(user).relative_to(self.root))
        return [*mounted, str(self.root), str(REPOSITORY), BARE, home, *as_user, *words]

    def fecbench(self, user: str, *words: str) -> "subprocess.Popen[str]":
        return self.host.popen(
            self.command(user, str(Path(sys.executable).with_name("fecbench")), *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, user: str, *words: str) -> tuple[int, str]:
        process = self.fecbench(user, *words)
        output, text = process.communicate(timeout=300)
        return process.returncode, text + output

    def home(self, user: str) -> Path:
        return self.root / ("root" if user == "root" else f"home/{user}")

    def files(self) -> dict[str, tuple[int, ...]]:
        """Return each file of the root, with what changes whenever it does."""
        listed = dict[str, tuple[int, ...]]()
        for folder, folders, names in os.walk(self.root):
            for name in (*folders, *names):
                path = Path(folder, name)
                state = path.lstat()
                facts = (state.st_mode, state.st_uid, state.st_gid, state.st_ino)
                listed[str(path)] = facts if path.is_dir() else (*facts, state.st_size, state.st_ctime_ns)
        return listed

    def processes(self) -> list[str]:
        """Return the commands that run in its network."""
        network = Path(f"/proc/{self.host.pid}/ns/net").readlink()
        commands = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "ns" / "net").readlink() == network:
                    commands.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # it has ended meanwhile
                continue
        return sorted(commands)


@pytest.fixture(scope="module")
def machines() -> Iterator[tuple[Machine, Machine]]:
    if shutil.which("debootstrap") is None:
        pytest.skip("needs debootstrap: apt-get install debootstrap")
    if sysconfig.get_python_version() != "3.11":
        pytest.skip("needs an environment of Python 3.11, as Debian 12 has it: it is mounted there")
    folder = Path(tempfile.mkdtemp(prefix="fecbench-bare-"))
    folder.chmod(0o755)
    roots = [folder / "near", folder / "far"]
    try:
        subprocess.run([BARE, "make", roots[0], PACKAGES], check=True)
        add_user = ["useradd", "--create-home", "--shell", "/bin/sh", USER]
        subprocess.run([BARE, "in", roots[0], "/", *add_user], check=True)
        (roots[0] / REPOSITORY.relative_to("/")).mkdir(parents=True)
        subprocess.run(["cp", "--archive", *roots], check=True)
        with build("single-path", {"internet": LinkSettings.symmetric(20, 10)}) as topology:
            topology.start()
            near, far = Machine(roots[0], topology.client), Machine(roots[1], topology.server)
            # As docs/field.md has it: made once, and copied to both.
            status, text = near.run(USER, "field", "certificates", "field")
            assert status == 0, text
            for machine, user in ((near, "root"), (far, USER)):
                subprocess.run(["cp", "--archive", near.home(USER) / "field", machine.home(user)], check=True)
            subprocess.run(["chown", "--recursive", "0:0", near.home("root") / "field"], check=True)
            yield near, far
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


@pytest.mark.parametrize("user", [USER, "root"])
def test_a_campaign_between_bare_machines_leaves_nothing_behind(
    machines: tuple[Machine, Machine], user: str
) -> None:
    """The far host is served by an ordinary user."""
    near, far = machines
    place = f"{far.host.address}:{PORT}"
    before, idle = [machine.files() for machine in machines], [machine.processes() for machine in machines]
    server = far.fecbench(USER, "field", "serve", "--listen", place, "--certificates", "field")
    assert server.stderr and "listens at" in (line := server.stderr.readline()), line + server.stderr.read()
    serving = far.processes()
    (near.home(user) / "bare.toml").write_text(over_a_path("bare", 3, 50_000))
    where = ["--server", place, "--path", "hidden", "--certificates", "field", "--db", "bare.sqlite"]
    status, text = near.run(user, "run", "bare.toml", "--engine", "field", *where)
    wait_until(lambda: far.processes() == serving, "the far host has ended what served the session")
    os.killpg(server.pid, signal.SIGTERM)
    _, log = server.communicate(timeout=20)

    wait_until(lambda: [machine.processes() for machine in machines] == idle, "nothing runs any more")
    assert far.files() == before[1]
    changed = {path for path, _ in near.files().items() ^ before[0].items()}
    assert changed and all(Path(path).is_relative_to(near.home(user)) for path in changed), changed
    assert "Traceback" not in text + log, (text, log)
    assert "On the path “hidden”" in text and "3 blocks" in text, text
    with only_campaign(near.home(user) / "bare.sqlite") as (database, campaign):
        records = [stored.record for stored in database.trials(campaign.id)]
    assert len(records) == 6
    # A busy machine may make some of them invalid; it makes none of them anything else.
    assert {record.state for record in records} <= {"ok", "invalid"}, [record.reason for record in records]
    assert any(record.state == "ok" for record in records), [record.reason for record in records]
    assert status == (0 if all(record.state == "ok" for record in records) else 1), text
    for record in (record for record in records if record.state == "ok"):
        path = record.checks["path"]
        assert path["address"] == path["outside"] == near.host.address, path
        assert path["least_rtt_ms"] > 19.5 and path["ttl"] == {"up": 62, "down": 62}, path
        carried = path["hosts"]["client"]["received_bytes"], path["hosts"]["server"]["sent_bytes"]
        assert all(50_000 < count < 100_000 for count in carried), carried
    status, text = near.run(user, "report", "--db", "bare.sqlite", "--output", "report")
    assert status in (0, 1) and "Traceback" not in text, text
