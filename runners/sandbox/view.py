"""An endpoint's view of the file system: all of it, read-only, except for other people's data.

An endpoint has a mount namespace of its own, which is made here. It may write to its log folder, and to
folders for temporary files that end with it. Homes and sockets of the machine's services are hidden. Its
implementation is visible wherever it lies: if something hides its folder, the folder is shown again.
"""

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fecbench.runners.sandbox import kernel

HIDDEN = (Path("/root"), Path("/home"), Path("/run"))
"""Empty for endpoints. The last has the sockets by which programs of a machine talk with each other."""
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
TEMPORARY_BYTES = 256 << 20
"""Size of each folder for temporary files, /dev/shm included."""
INODES = 16_384
"""Files of each folder that an endpoint may write to."""
# Name and minor number; their major number is 1.
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
STREAMS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}

UNPRIVILEGED = kernel.MS_NOSUID | kernel.MS_NODEV


class View(NamedTuple):
    """The files that one endpoint sees."""

    user: int
    log_folder: Path
    """The log folder, writable whatever is mounted or hidden above."""
    folders: Sequence[Path]
    """Folders that it may read, whatever hides them."""
    papers: Mapping[Path, bytes]
    """Files that it alone can read, and not write; nothing else of their folders is there."""

    def make(self) -> None:
        """Make the view in this process, which has a mount namespace of its own. Raises OSError."""
        descriptors = {path: open_path(path) for path in sorted({*self.folders, self.log_folder})}
        kernel.make_read_only(Path("/"))
        for folder in HIDDEN:
            if folder.is_dir():
                _cover(folder)
        for folder in TEMPORARY:
            if folder.is_dir():
                cover_for_temporary_files(folder)
        mount_devices()
        mount_sys()
        for folder in sorted({path.parent for path in self.papers}):
            if folder.is_dir() and os.statvfs(folder).f_flag & os.ST_RDONLY:
                _cover(folder)
        for path, descriptor in descriptors.items():
            if not is_reachable(path, descriptor):
                show(path, descriptor)
        kernel.mount("", self.log_folder, "", kernel.MS_REMOUNT | kernel.MS_BIND | UNPRIVILEGED)
        for path, content in self.papers.items():
            self._lay(path, content)
        os.chdir(self.log_folder)

    def _lay(self, path: Path, content: bytes) -> None:
        _make_way_to(path)
        path.write_bytes(content)
        os.chown(path, 0, self.user)
        path.chmod(0o440)


def open_path(path: Path) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _cover(folder: Path, options: str = "mode=755,size=16m") -> None:
    """Have an empty folder in the place of this one."""
    kernel.mount("tmpfs", folder, "tmpfs", UNPRIVILEGED, options)


def cover_for_temporary_files(folder: Path) -> None:
    _cover(folder, f"mode=1777,size={TEMPORARY_BYTES},nr_inodes={INODES}")


def mount_devices() -> None:
    devices = Path("/dev")
    kernel.mount("tmpfs", devices, "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, "mode=755,size=64k")
    for name, minor in DEVICES.items():
        os.mknod(devices / name, stat.S_IFCHR, os.makedev(1, minor))
        (devices / name).chmod(0o666)
    for name, target in STREAMS.items():
        (devices / name).symlink_to(f"/proc/self/{target}")
    (devices / "shm").mkdir()
    sealed = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NOEXEC
    kernel.mount("", devices, "", kernel.MS_REMOUNT | kernel.MS_BIND | sealed)
    cover_for_temporary_files(devices / "shm")


def mount_sys() -> None:
    """Mount the /sys of the network namespace of this process, if it is not the one that is there."""
    sealed = UNPRIVILEGED | kernel.MS_NOEXEC | kernel.MS_RDONLY
    try:
        kernel.mount("sysfs", "/sys", "sysfs", sealed)
    except OSError as error:
        if error.errno != errno.EBUSY:  # the same file system at the same place
            raise
        kernel.mount("", "/sys", "", kernel.MS_REMOUNT | kernel.MS_BIND | sealed)


def is_reachable(path: Path, descriptor: int) -> bool:
    """Whether everybody can go to `path`, and finds there what the descriptor is of."""
    try:
        open_to_all = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
        return open_to_all and os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _is_open_to_all(path: Path) -> bool:
    descriptor = open_path(path)
    try:
        return is_reachable(path, descriptor)
    finally:
        os.close(descriptor)


def open_ways(folders: Iterable[Path]) -> None:
    """Let everybody enter these folders, in this process and what it starts, even if a home closes them.

    The process has a mount namespace of its own then; no rights are changed. Raises OSError.
    """
    paths = sorted(folders)  # those that have others first
    if all(_is_open_to_all(path) for path in paths):
        return
    here = Path.cwd()
    kernel.unshare(kernel.CLONE_NEWNS, "mount namespace")
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    mask = os.umask(0o022)
    # A path must be opened within the namespace to be shown in it.
    for path, descriptor in [(path, open_path(path)) for path in paths]:
        if not is_reachable(path, descriptor):  # one within another is there by now
            show(path, descriptor)
        os.close(descriptor)
    os.umask(mask)
    os.chdir(here)  # by a way that everybody may go


def show(path: Path, descriptor: int) -> None:
    """Have the folder that the descriptor is of at `path`."""
    _make_way_to(path)
    path.mkdir(exist_ok=True)
    kernel.mount(f"/proc/self/fd/{descriptor}", path, "", kernel.MS_BIND | kernel.MS_REC)


def _make_way_to(path: Path) -> None:
    """Make the folders above that are not there, and cover those that not everybody may enter."""
    for parent in reversed(path.parents):
        if not parent.is_dir():
            parent.mkdir()
        elif not parent.stat().st_mode & stat.S_IXOTH:
            _cover(parent)
