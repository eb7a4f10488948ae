"""Endpoints of the QUIC interop runner's contract (quic-impls/contract/interop.md).

The harness gives such an endpoint a root of its own (`private_root`), names, certificates and the content. It
sees by the kernel when a server is ready, and times the client's download itself: from the first frame that
the link saw until the file was closed. It verifies what arrived.
"""

import contextlib
import ctypes
import hashlib
import os
import signal
import stat
import struct
import subprocess
import time
from pathlib import Path

from fecbench.runners.implementations.interop import Bundle, filled
from fecbench.runners.sandbox import kernel
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.tasks.task import EndpointTask, Role, Task
from fecbench.runners.trial import certificates
from fecbench.runners.trial.confinement import Cell
from fecbench.runners.trial.content import content, sha256
from fecbench.runners.trial.endpoint import Endpoint
from fecbench.runners.trial.private_root import CERTIFICATES, DOWNLOADS, LOGS, WWW, PrivateRoot
from fecbench.runners.trial.site import Site
from fecbench.runners.trial.starvation import Watch
from fecbench.topologies.namespace import run_inside
from fecbench.topologies.sysctls import write_sysctls
from fecbench.topologies.topology import Host, Pair

SERVER_NAMES = certificates.INTEROP_NAMES
"""The first stands in requests. All are the server's one address: a trial has one family of addresses."""
CLIENT_NAMES = ("client4", "client", "client6", "client46")
NAME = "content"
"""Name of the content, in /www and in /downloads."""
NOTHING = "#!/bin/sh\n"
"""Script that images call to set up the runner's own network, and to wait for it."""
ROOM_BYTES = 64 << 20
"""Room in /downloads for other files of a client than its download."""

_IN_CLOSE_WRITE, _IN_MOVED_TO = 0x8, 0x80
_IN_NONBLOCK, _IN_CLOEXEC = 0o4000, 0o2000000
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


def open_port(task: Task, server: Host) -> None:
    """Let servers without rights listen at a port below 1024."""
    anybody_may_bind = {"net/ipv4/ip_unprivileged_port_start": str(task.port)}
    run_inside(f"/proc/{server.pid}/ns/net", lambda: write_sysctls(anybody_may_bind))


class InteropEndpoint(Endpoint):
    """An endpoint whose output the harness does not parse, but keeps for people who ask why it ended."""

    endings = (signal.SIGTERM, signal.SIGKILL)

    def __init__(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(name, process)
        self.look_for_port: tuple[int, int] | None = None
        """A process in the server's network, and the port that it is ready with."""

    def take_stdout(self, data: bytes) -> None:
        self.take_stderr(data)

    def look(self) -> None:
        if self.look_for_port is not None and not self.ready:
            self.ready = is_bound(*self.look_for_port)

    def end_group(self) -> None:
        """End what a shell in between has left behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def is_bound(process: int, port: int) -> bool:
    """Whether a UDP socket in the network of a process has this port: no packet is spent on it."""
    return any(
        port in bound_ports(path.read_text(encoding="utf-8"))
        for path in (Path(f"/proc/{process}/net/{name}") for name in ("udp", "udp6"))
        if path.exists()
    )


def bound_ports(table: str) -> set[int]:
    """The local ports in the text of /proc/net/udp."""
    return {int(line.split()[1].rpartition(":")[2], 16) for line in table.splitlines()[1:]}


class Downloads:
    """The folder /downloads of a client: in memory, and when its file was closed."""

    def __init__(self, folder: Path, user: int, name: str, size_bytes: int) -> None:
        self.folder, self.name = folder, name
        folder.mkdir(parents=True)
        options = f"mode=700,uid={user},gid={user},size={size_bytes + ROOM_BYTES}"
        kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        self.events = _watch(folder)
        self.closed_ns: int | None = None

    def note(self) -> None:
        """Take what happened: the last close of a file that was written, or its renaming, is what counts."""
        now_ns = time.monotonic_ns()
        events = os.read(self.events, 1 << 16)
        while events:
            _, _, _, length = _EVENT.unpack_from(events)
            name = events[_EVENT.size : _EVENT.size + length].rstrip(b"\0")
            if name == self.name.encode():
                self.closed_ns = now_ns
            events = events[_EVENT.size + length :]

    def problem(self, wanted_sha256: str, size_bytes: int) -> str:
        """Return the fault of the received file, or nothing. The folder is not trusted: no link is
        followed."""
        path = f"{DOWNLOADS}/{self.name}"
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(self.folder / self.name, flags)
        except OSError as error:
            return f"succeeded, but {path} cannot be read: {error.strerror}"
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return f"succeeded, but {path} is no file"
            if status.st_size != size_bytes:
                return f"succeeded, but {path} has {status.st_size} bytes, not {size_bytes}"
            received = hashlib.file_digest(file, "sha256").hexdigest()
        if received != wanted_sha256:
            return f"succeeded, but {path} has other content: SHA-256 {received}, not {wanted_sha256}"
        return ""


def _watch(folder: Path) -> int:
    """A descriptor to read of what is closed in a folder after it was written, and of what is moved there."""
    descriptor: int = _libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), f"inotify: {os.strerror(ctypes.get_errno())}")
    if _libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_CLOSE_WRITE | _IN_MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), f"inotify {folder}: {os.strerror(ctypes.get_errno())}")
    return descriptor


class Timing:
    """Times of the measured client, completed when the link reports when its first frame came."""

    def __init__(self, downloads: Downloads) -> None:
        self._downloads = downloads
        self.watch: Watch | None = None

    def complete(self, task: Task, outcome: Outcome) -> None:
        """Add the time, and the check of what arrived, to the outcome of a client that reports success."""
        client = outcome.endpoints.get("client")
        if client is None:
            return
        first = [report.directions["up"].first_in_ns for report in outcome.links.values()]
        first_ns, closed_ns = (
            min((ns for ns in first if ns is not None), default=None),
            self._downloads.closed_ns,
        )
        if first_ns is None or closed_ns is None:
            if client.exit_code == 0 and not client.complaint:
                client.complaint = "succeeded, but no frame of it came to the link, or it closed no file"
            return
        if client.exit_code == 0 and not client.complaint:
            client.metrics = {**(client.metrics or {}), task.completion: (closed_ns - first_ns) / 1e9}
        if self.watch is not None and outcome.stalled_s is not None:
            outcome.stalled_s = self.watch.within_s(first_ns / 1e9, closed_ns / 1e9)


class Stage:
    """The place where the two endpoints of a pair run, and their files there."""

    def __init__(self, task: Task, site: Site, pair: int, hosts: Pair, folder: Path) -> None:
        """`folder` is the pair's."""
        self._task, self._site, self._folder = task, site, folder
        self._server = task.pairs[pair].server
        self._workload = task.pairs[pair].workload
        self._hosts: dict[Role, Host] = {"client": hosts.client, "server": hosts.server}
        self.downloads: Downloads | None = None
        self._mounted: list[Path] = []

    @property
    def _size_bytes(self) -> int:
        return int(self._workload["size_bytes"])

    @property
    def _file(self) -> str:
        """The name of what is downloaded. Servers of our own contract know it by its size. Others may have
        content of their own at such a number, as that of ngtcp2 does."""
        return str(self._size_bytes) if self._server.interop is None else NAME

    def start(self, role: Role, end: EndpointTask, cell: Cell) -> "subprocess.Popen[bytes]":
        """Start an endpoint. Raises StartError and ConfinementError as `Cell.start`."""
        command = self._site.commands[end.implementation][role]
        bundle = self._site.bundles.get(end.implementation)
        folders = self._site.folders(end.implementation)
        shared_folders: dict[Path, Path] = {}
        if role == "client":
            self._mounted.append(self._folder / "downloads")
            self.downloads = Downloads(self._folder / "downloads", cell.user, self._file, self._size_bytes)
            shared_folders[DOWNLOADS] = self.downloads.folder
        else:
            shared_folders[WWW] = self._make_content()
        root = PrivateRoot(
            user=cell.user,
            log_folder=cell.log_folder,
            bundle_root=None if bundle is None else bundle.root,
            folders=cell.readable(command, folders) if bundle is None else (),
            shown=shared_folders,
            texts=self._texts(bundle),
            papers=self._papers(role),
            working_folder=LOGS if bundle is None else Path(bundle.working_folder),
        )
        variables = {**(bundle.environment if bundle else {}), **self._variables(role, end)}
        return cell.start_in(root, self._hosts[role].popen_prepared, command, variables)

    def problem(self) -> str:
        """Return the fault of what the client received, or nothing."""
        assert self.downloads is not None
        return self.downloads.problem(sha256(self._task.content_seed, self._size_bytes), self._size_bytes)

    def close(self) -> None:
        """Remove the content, and what has been downloaded."""
        for folder in self._mounted:
            kernel.unmount(folder)
            folder.rmdir()

    def _make_content(self) -> Path:
        folder = self._folder / "www"
        self._mounted.append(folder)
        folder.mkdir(parents=True)
        options = f"mode=755,size={self._size_bytes + (1 << 20)}"
        kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        path = folder / NAME
        path.write_bytes(content(self._task.content_seed, self._size_bytes))
        path.chmod(0o644)
        (folder / str(self._size_bytes)).hardlink_to(path)  # as clients of our own contract ask for it
        kernel.make_read_only(folder)
        return folder

    def _texts(self, bundle: Bundle | None) -> dict[Path, str]:
        server, client = self._hosts["server"].address, self._hosts["client"].address
        host_names = {"127.0.0.1": ("localhost",), server: SERVER_NAMES, client: CLIENT_NAMES}
        hosts = "".join(f"{address} {' '.join(names)}\n" for address, names in host_names.items())
        texts = {
            Path("/setup.sh"): NOTHING,
            Path("/wait-for-it.sh"): NOTHING,
            Path("/etc/hosts"): hosts,
            Path("/etc/resolv.conf"): "",
        }
        return texts if bundle else {**texts, Path("/etc/nsswitch.conf"): "hosts: files\n"}

    def _papers(self, role: Role) -> dict[Path, bytes]:
        folder = certificates.of_kind(self._site.certificates, self._task.pairs[0].certificates)
        papers = {
            CERTIFICATES / "ca.pem": (folder / "authority.pem").read_bytes(),
            CERTIFICATES / "cert.pem": (folder / "interop.pem").read_bytes(),
        }
        if role == "server":
            papers[CERTIFICATES / "priv.key"] = (folder / "interop.key").read_bytes()
        return papers

    def _variables(self, role: Role, end: EndpointTask) -> dict[str, str]:
        assert end.interop is not None
        variables = {name: filled(value, end.options) for name, value in end.interop.env.items()}
        variables |= {"HOME": str(LOGS), "ROLE": role, "TESTCASE": end.interop.testcase}
        variables[f"{role.upper()}_PARAMS"] = filled(end.interop.params, end.options)
        if role == "client":
            variables["REQUESTS"] = f"https://{SERVER_NAMES[0]}:{self._task.port}/{self._file}"
        # The images of the QUIC interop runner need the first of these two variables.
        variables["SSLKEYLOGFILE"] = f"{LOGS}/keys.log"
        if self._task.capture:
            variables["QLOGDIR"] = f"{LOGS}/qlog/"
        return variables
