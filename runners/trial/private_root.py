"""The file system of an endpoint of the interop contract: a root of its own, in memory.

Such a program is written for a container: it reads and writes at paths of the contract (`/www`, `/downloads`,
`/certs`, `/logs`), which cannot be its own anywhere else. The root is made in the mount namespace of the
endpoint and is gone with it. It has the machine's programs, or those of a bundle, read-only and each entry
by itself: so whatever a bundle has at a path of the contract, such as a link to somewhere else, is not there,
and nothing is ever made or written through a path that a bundle decides about.
"""

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fecbench.runners.sandbox import kernel, view

DOWNLOADS, LOGS, WWW, CERTIFICATES = (Path("/", name) for name in ("downloads", "logs", "www", "certs"))
"""Paths of the contract."""

_OLD = Path("/.old")
_OURS = {"dev", "downloads", "certs", "logs", "proc", "sys", "tmp", "www", "etc", _OLD.name}
"""Names at the root that are ours, even if a bundle has them, too."""
_OF_MACHINE = ("bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr")
"""Folders of the machine with programs and their libraries."""
_OF_ETC = ("alternatives", "ld.so.cache")
"""Entries of /etc that programs cannot do without."""


@dataclass(frozen=True)
class PrivateRoot:
    """The files that one endpoint sees."""

    user: int
    log_folder: Path
    """The log folder; writable, as /logs."""
    bundle_root: Path | None
    """The file system of a bundle; None: the machine's programs."""
    folders: Sequence[Path] = ()
    """Folders that it can read at their own paths; only with the machine's programs."""
    shown: Mapping[Path, Path] = field(default_factory=dict)
    """Folders at paths of the contract; writable if the original is."""
    texts: Mapping[Path, str] = field(default_factory=dict)
    """Files that it can read."""
    papers: Mapping[Path, bytes] = field(default_factory=dict)
    """Files that it alone can read."""
    working_folder: Path = LOGS

    def make(self) -> None:
        """Make this file system in this process, which has a mount namespace of its own. Raises OSError."""
        base, names = self.bundle_root or Path("/"), None if self.bundle_root else _OF_MACHINE
        of_base = view.open_path(base)
        descriptors = {
            target: view.open_path(folder) for target, folder in {LOGS: self.log_folder, **self.shown}.items()
        }
        # The prefix of a program in /bin is /, which is laid out below.
        readable = {path: view.open_path(path) for path in sorted(set(self.folders) - {Path("/")})}
        self._enter_new_root()
        own_names = _OURS | {path.name for path in self._files if path.parent == Path("/")}
        _lay_out(of_base, Path("/"), names, own_names)
        self._lay_out_etc(of_base)
        view.mount_devices()
        view.mount_sys()
        view.cover_for_temporary_files(Path("/tmp"))
        for target, descriptor in descriptors.items():
            kernel.mount(f"/proc/self/fd/{descriptor}", target, "", kernel.MS_BIND)
        for path, descriptor in readable.items():
            if self.bundle_root is None and not view.is_reachable(path, descriptor):
                view.show(path, descriptor)
                kernel.make_read_only(path)
        self._write_files()
        kernel.unmount(_OLD)
        _OLD.rmdir()
        sealed = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | view.UNPRIVILEGED
        kernel.mount("", "/", "", sealed)
        os.chdir(self.working_folder)

    @property
    def _files(self) -> list[Path]:
        return [*self.texts, *self.papers]

    def _enter_new_root(self) -> None:
        new = self.log_folder  # hidden by it, in this namespace
        kernel.mount("tmpfs", new, "tmpfs", view.UNPRIVILEGED, "mode=755,size=16m")
        for name in _OURS:
            (new / name).mkdir()
        kernel.pivot_root(new, new / _OLD.name)
        os.chdir("/")
        kernel.mount("proc", "/proc", "proc", view.UNPRIVILEGED | kernel.MS_NOEXEC)

    def _lay_out_etc(self, of_base: int) -> None:
        """Show the base's /etc, except for files of ours. An /etc that is a link is not followed."""
        names = None if self.bundle_root else _OF_ETC
        try:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
            of_etc = os.open("etc", flags, dir_fd=of_base)
        except OSError:
            return
        own_names = {path.name for path in self._files if path.parent == Path("/etc")}
        _lay_out(of_etc, Path("/etc"), names, own_names)
        os.close(of_etc)

    def _write_files(self) -> None:
        for path, text in self.texts.items():
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if text.startswith("#!") else 0o644)
        for path, content in self.papers.items():
            path.write_bytes(content)
            os.chown(path, 0, self.user)
            path.chmod(0o440)


def _lay_out(source: int, target: Path, names: Collection[str] | None, excluded: Collection[str]) -> None:
    """Show the entries of the open folder `source` in `target`, where nobody else writes.

    All entries, or those of these names, are shown, without those that are excluded. Links stay links.
    """
    readable = os.open(f"/proc/self/fd/{source}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(readable) as entries:
            present = {entry.name for entry in entries}
        for name in sorted(present - set(excluded)):
            if names is None or name in names:
                _lay_out_entry(readable, name, target / name)
    finally:
        os.close(readable)


def _lay_out_entry(source: int, name: str, target: Path) -> None:
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISLNK(status.st_mode):
            target.symlink_to(os.readlink(name, dir_fd=source))
            return
        if stat.S_ISDIR(status.st_mode):
            target.mkdir()
        elif stat.S_ISREG(status.st_mode):
            target.touch()
        else:
            return
        kernel.mount(f"/proc/self/fd/{descriptor}", target, "", kernel.MS_BIND | kernel.MS_REC)
        kernel.make_read_only(target)
    finally:
        os.close(descriptor)
