"""System calls that Python does not offer. Each raises OSError that says what was attempted."""

import ctypes
import os
import struct
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x4000, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR = 442  # its number on every architecture that Python runs on but Alpha
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
# These have one number, too. The last is the kind of rule that is for a file, or a folder and all below.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF, _PATH_BENEATH = 444, 445, 446, 1
_LANDLOCK_CREATE_RULESET_VERSION = 1

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 21, 22, 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_SYS_ADMIN = 21
_SELF = Path("/proc/self")

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


def _call(attempted: str, status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{attempted}: {os.strerror(number)}")


def unshare(flags: int, what: str) -> None:
    """Move this process into new namespaces; the error names `what`."""
    _call(f"unshare {what}", _libc.unshare(flags))


def mount(source: str, target: Path | str, kind: str, flags: int, options: str = "") -> None:
    """Call mount(2): `kind` is a kind of file system, or empty if the flags say what is done."""
    encoded = [os.fsencode(value) if value else None for value in (source, target, kind)]
    status = _libc.mount(*encoded, ctypes.c_ulong(flags), options.encode() or None)
    _call(f"mount {kind or source} at {target}", status)


def unmount(target: Path) -> None:
    """Unmount a file system. Open descriptors in it stay usable."""
    _call(f"unmount {target}", _libc.umount2(os.fsencode(target), _MNT_DETACH))


def pivot_root(new: Path, old: Path) -> None:
    """Have the mount at `new` as the root, and what was the root at `old`, a folder in there."""
    _call(f"pivot_root {new}", _libc.pivot_root(os.fsencode(new), os.fsencode(old)))


def make_read_only(root: Path) -> None:
    """The mount at `root` and all below: nothing can be written, no program gets rights, no device works."""
    attributes = _MountAttributes(
        attr_set=_MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, propagation=MS_PRIVATE
    )
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    where = (_AT_FDCWD, os.fsencode(root), _AT_RECURSIVE)
    status = _libc.syscall(ctypes.c_long(_MOUNT_SETATTR), *where, ctypes.byref(attributes), size)
    _call(f"make {root} read-only", status)


def die_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when its parent has ended. A change of user forgets it."""
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Make this process the parent of all orphans below it, in any session."""
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def become(user: int) -> None:
    """Become this user, with the group of the same number, no other group and no capability, now and in every
    program that is started."""
    for capability in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="utf-8")) + 1):
        _prctl("PR_CAPBSET_DROP", _PR_CAPBSET_DROP, capability)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # The change of user has emptied all but the inheritable set, unless the caller's securebits forbade it.
    drop_capabilities()
    gain_nothing()


def drop_capabilities() -> None:
    """Go on without any; what is started has some again where the user is root, unless it gains nothing."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", _libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))
    _prctl("PR_CAP_AMBIENT", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)


def gain_nothing() -> None:
    """Forbid programs that this process starts to have more rights than it has."""
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 if it has none."""
    size, flags = ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION)
    version: int = _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE_RULESET), None, size, flags)
    return max(0, version)


def create_ruleset(handled: int, scopes: int) -> int:
    """A descriptor of rules of Landlock: of these rights to files only what a rule grants is left, and what
    `scopes` are of stays within. Scopes need its version 6."""
    attributes = struct.pack("QQQ", handled, 0, scopes) if scopes else struct.pack("Q", handled)
    size, flags = ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
    ruleset: int = _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE_RULESET), attributes, size, flags)
    _call("landlock_create_ruleset", min(0, ruleset))
    return ruleset


def allow_below(ruleset: int, path: Path, access: int) -> None:
    """Grant these rights to what is at the path, and below it."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", access, descriptor)
        arguments = (ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
        _call(f"landlock_add_rule {path}", _libc.syscall(ctypes.c_long(_LANDLOCK_ADD_RULE), *arguments))
    finally:
        os.close(descriptor)


def restrict_to(ruleset: int) -> None:
    """Restrict this thread, and what it starts, to the rules. It must have given up gaining rights before."""
    arguments = (ctypes.c_int(ruleset), ctypes.c_uint32(0))
    status = _libc.syscall(ctypes.c_long(_LANDLOCK_RESTRICT_SELF), *arguments)
    _call("landlock_restrict_self", status)


def can_filter_calls() -> bool:
    """Whether this kernel has filters of system calls."""
    mode: int = _libc.prctl(_PR_GET_SECCOMP, *(ctypes.c_ulong(0),) * 4)
    return mode >= 0


def filter_calls(program: bytes) -> None:
    """Have this thread, and what it starts, make only those system calls that the program allows."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
    _prctl("PR_SET_SECCOMP", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header)


def may_administer() -> bool:
    """Whether this process can make namespaces and become another user: a container's root may not."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> _CAP_SYS_ADMIN & 1)


def has_user(user: int) -> bool:
    """Whether a process may become this user and the group of the same number: a user namespace, such as a
    container without privileges, has few. A kernel without user namespaces, which has no maps, has all."""
    maps = [path for kind in ("uid", "gid") if (path := _SELF / f"{kind}_map").exists()]
    return all(_is_mapped(user, path.read_text(encoding="utf-8")) for path in maps)


def _is_mapped(number: int, id_map: str) -> bool:
    ranges = (map(int, line.split()) for line in id_map.splitlines())
    return any(first <= number < first + count for first, _, count in ranges)


def _prctl(what: str, option: int, value: int, more: bytes | int = 0) -> None:
    third = more if isinstance(more, bytes) else ctypes.c_ulong(more)
    _call(f"prctl {what}", _libc.prctl(option, ctypes.c_ulong(value), third, *(ctypes.c_ulong(0),) * 2))
