"""Hosts for tests: network namespaces with names of their own on one switch, and what runs in them."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.runners.trial import certificates
from tests.runners.conftest import Fecbench
from tests.waiting import wait_until

SERVER_USER = "nobody"
DATABASE_HOST = "db.test"
READY_S, END_S = 60.0, 30.0
DISK_MB = 1200
"""Disk of a database: a campaign of 20,000 trials takes 44, and a test that kills may need several."""


class Host:
    """A network namespace with a name and an address, for as long as its holder lives."""

    def __init__(self, name: str, switch: "Host | None", number: int) -> None:
        self.name, self.address = name, f"10.77.0.{number}"
        self._holder = subprocess.Popen(["unshare", "--net", "--uts", "sleep", "infinity"])
        own = Path("/proc/self/ns/uts").readlink()
        path = Path(f"/proc/{self._holder.pid}/ns/uts")
        wait_until(lambda: path.exists() and path.readlink() != own, f"the host {name}")
        self.run("hostname", name)
        self.run("ip", "link", "set", "lo", "up")
        self._switch, self._port = switch, f"to-{name}"
        if switch is None:
            self.run("ip", "link", "add", "bridge", "type", "bridge")
            self.run("ip", "link", "set", "bridge", "up")
            return
        peer = ["peer", "name", self._port, "netns", str(switch._holder.pid)]
        self.run("ip", "link", "add", "eth0", "type", "veth", *peer)
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        switch.run("ip", "link", "set", self._port, "master", "bridge", "up")

    def within(self, *command: object) -> list[str]:
        """The command as one of this host's; it stays one process."""
        return ["nsenter", "--net", "--uts", "-t", str(self._holder.pid), "--", *map(str, command)]

    def run(self, *command: object) -> None:
        subprocess.run(self.within(*command), check=True, capture_output=True, timeout=END_S)

    def plug(self, state: str) -> None:
        """`down` pulls its cable out, `up` puts it back."""
        assert self._switch
        self._switch.run("ip", "link", "set", self._port, state)

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Command:
    """A command of fecbench on a host, whose words go to a file."""

    def __init__(self, host: Host, log: Path, *arguments: object) -> None:
        self.log = log
        with log.open("a") as words:
            self.process = subprocess.Popen(
                host.within(Fecbench.path, *arguments), cwd=REPOSITORY, stdout=words, stderr=words
            )

    @property
    def words(self) -> str:
        return self.log.read_text()

    def is_running(self) -> bool:
        return self.process.poll() is None

    def until(self, words: str) -> None:
        wait_until(lambda: words in self.words or not self.is_running(), f"{words} in {self.words}")

    def until_count(self, words: str, count: int) -> None:
        """Wait until it has said so as often, and no oftener; a command that has ended says no more."""
        wait_until(lambda: self.words.count(words) >= count or not self.is_running(), f"{count} × {words}")
        assert self.words.count(words) <= count

    def has_joined(self) -> bool:
        """Whether a worker takes part in a campaign now."""
        return "takes part" in self.words.rpartition("left")[2]

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class PostgreSQL:
    """A server of Debian's on a host, over TLS, whose disk is small."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._programs = max(
            Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
        )
        self.folder = Path(tempfile.mkdtemp(prefix="fecbench-pg-", dir="/tmp"))
        self._disk = self.folder / "disk"
        self._disk.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "tmpfs", self._disk], check=True
        )
        certificates.write(self.folder, DATABASE_HOST)
        user = pwd.getpwnam(SERVER_USER).pw_uid
        for path in (self.folder, *self.folder.iterdir()):
            os.chown(path, user, -1)
        self._run("initdb", "-D", self._data, "-U", "fecbench", "-A", "trust", "-E", "UTF8", "--no-sync")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("hostssl all all 10.77.0.0/24 trust\n")
        self.start()

    @property
    def _data(self) -> Path:
        return self._disk / "data"

    def url(self, name: str) -> str:
        """Make a new database, and return its URL."""
        self._run("createdb", "-h", self.folder, "-U", "fecbench", name)
        return (
            f"postgresql://fecbench@{DATABASE_HOST}/{name}?hostaddr={self._host.address}"
            f"&sslmode=verify-full&sslrootcert={self.folder}/authority.pem"
        )

    def local_url(self, name: str) -> str:
        """The same for this process."""
        return f"postgresql://fecbench@/{name}?host={self.folder}"

    def start(self) -> None:
        options = {
            "unix_socket_directories": self.folder,
            "listen_addresses": self._host.address,
            "ssl": "on",
            "ssl_cert_file": self.folder / "server.pem",
            "ssl_key_file": self.folder / "server.key",
            "fsync": "off",
            "max_wal_size": "64MB",
            "client_connection_check_interval": "5s",
            "tcp_keepalives_idle": "10",
            "tcp_user_timeout": "30000",
        }
        words = " ".join(f"-c {name}={value}" for name, value in options.items())
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self.folder / "log", "-o", words, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def is_running(self) -> bool:
        status = self._command("pg_ctl", "-D", self._data, "status")
        return subprocess.run(status, capture_output=True).returncode == 0

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        filler = self._disk / "filler"
        # Without a buffer, which would be written once more as the file is closed.
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
        try:
            yield
        finally:
            filler.unlink()

    def close(self) -> None:
        if self.is_running():
            self.stop()
        subprocess.run(["umount", self._disk], check=True)
        shutil.rmtree(self.folder)

    def _command(self, program: str, *arguments: object) -> list[str]:
        as_server = ["setpriv", f"--reuid={SERVER_USER}", "--regid=nogroup", "--clear-groups", "--"]
        return self._host.within(*as_server, self._programs / program, *arguments)

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            self._command(program, *arguments),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            timeout=2 * READY_S,
        )
