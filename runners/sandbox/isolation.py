"""Runs a function in PID, mount and network namespaces of its own, so that whatever it starts dies with it.

The function runs as the first process of its PID namespace: when it ends, or is killed, or when the process
that asked for it is killed, the kernel kills everything else in there. Namespaces of the network, TAPs and
attached BPF programs go with the processes that held them. Nothing has to be cleaned up afterwards.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from fecbench.errors import Failed
from fecbench.runners.refusal import Refusal
from fecbench.runners.sandbox import kernel

_NO_MOUNT_POINT = "the root directory is no mount point"
_MEND = "mend: enter it by pivot_root, as systemd-nspawn does"
KILL_LIMIT_S = 5.0
TRY_LIMIT_S = 10.0


class IsolationError(Failed):
    """The function gave no answer: it was killed, crashed, or took longer than its limit."""


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent, whose id is `parent`, has ended."""
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def go_on_in_pid_namespace(parent: int) -> None:
    """Go on as a new process in a PID namespace of its own, and return in that one alone.

    This one waits for it, and ends as it does. When this one has ended, however that was, everything in the
    namespace is killed. `parent` is the parent of this process, with which all ends. Call it from a process
    with one thread.
    """
    die_with_parent(parent)
    launcher = os.pidfd_open(os.getpid())
    kernel.unshare(kernel.CLONE_NEWPID, "PID namespace")
    # The first process of a namespace ignores signals from itself, so another process continues.
    if os.fork() == 0:
        _hold_namespace(launcher)
    going_on = os.fork()
    os.close(launcher)
    if going_on == 0:
        return
    _leave_streams()
    status = os.waitstatus_to_exitcode(os.waitpid(going_on, 0)[1])
    if status < 0:
        if -status != signal.SIGKILL:  # which has no other meaning
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _hold_namespace(launcher: int) -> NoReturn:
    """The body of a first process that waits for the end of `launcher`: orphans become its children."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
        _leave_streams()
        _await_end(launcher)
    finally:
        os._exit(1)


def _await_end(process: int, limit_ms: int | None = None) -> bool:
    """Wait for the end of a process, by its descriptor; whether it has ended within the limit.

    From inside a new PID namespace a parent's id is 0, whether it lives or not.
    """
    end = select.poll()
    end.register(process, select.POLLIN)
    return bool(end.poll(limit_ms))


def _leave_streams() -> None:
    """Leave the standard streams to others, whose end is to be seen."""
    for descriptor in range(3):
        os.close(descriptor)


def mount_own_proc() -> None:
    """Mount an own /proc in this process, which has PID and mount namespaces of its own."""
    try:
        kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise OSError(errno.EINVAL, _NO_MOUNT_POINT) from None
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _first_process(function: Callable[[], bytes], answer: int, keeper: int) -> None:
    """The body of the first process of the new namespaces, which dies with `keeper`."""
    kernel.die_with_parent(signal.SIGKILL)
    if _await_end(keeper, 0):  # it ended before the call above
        os._exit(1)
    os.close(keeper)
    # To the first process of a PID namespace the default means that they do nothing. To ignore them would
    # be inherited by the endpoints, which are asked to end by these signals.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    mount_own_proc()
    document = function()
    with os.fdopen(answer, "wb") as stream:
        stream.write(document)


def _keeper(function: Callable[[], bytes], answer: int, parent: int, *, network: bool) -> None:
    """Make the namespaces, and stay between them and the caller, so that the caller stays outside."""
    die_with_parent(parent)
    keeper = os.pidfd_open(os.getpid())
    flags = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS
    if network:
        kernel.unshare(flags | kernel.CLONE_NEWNET, "PID, mount and network namespaces")
    else:
        kernel.unshare(flags, "PID and mount namespaces")
    first = os.fork()
    if first == 0:
        _exit_after(lambda: _first_process(function, answer, keeper), answer)
    os.close(answer)
    _, status = os.waitpid(first, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _exit_after(body: Callable[[], None], answer: int) -> None:
    """End this forked process after `body`, without the parent's exit handlers; a failure is its answer."""
    status = 1
    try:
        body()
        status = 0
    except BaseException as error:
        os.write(answer, repr(error).encode())
    finally:
        os._exit(status)


def _read_answer(stream: int, limit_s: float) -> bytes | None:
    """Return all bytes until the end of the stream, or None if the limit passes first."""
    deadline = time.monotonic() + limit_s
    parts: list[bytes] = []
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([stream], [], [], left_s)[0]:
            return None
        part = os.read(stream, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def run_isolated(function: Callable[[], bytes], limit_s: float, *, network: bool = True) -> bytes:
    """The bytes that `function` returns when run as the first process of new namespaces.

    Without `network`, the network namespace stays the caller's.

    Returns when every process that was started in there has ended. Raises IsolationError when the function
    failed or did not end within `limit_s` seconds. Call it from a process with one thread.
    """
    parent = os.getpid()
    reading, writing = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(reading)
        _exit_after(lambda: _keeper(function, writing, parent, network=network), writing)
    os.close(writing)
    try:
        answer = _read_answer(reading, limit_s)
        if answer is None:
            os.kill(keeper, signal.SIGKILL)
            _read_answer(reading, KILL_LIMIT_S)  # its end is the end of the first process
    finally:
        os.close(reading)
    _, status = os.waitpid(keeper, 0)
    if answer is None:
        raise IsolationError(f"no answer within {limit_s:g} s")
    code = os.waitstatus_to_exitcode(status)
    if code != 0 or not answer:
        text = answer.decode(errors="replace") or "no answer"
        raise IsolationError(f"it ended with status {code}: {text[-500:]}")
    return answer


def require(command: str) -> None:
    """Raises Refusal where `command` cannot isolate anything: better now than in each of its trials."""
    if os.geteuid() != 0:
        raise Refusal(f"{command} must be root: it makes network namespaces and loads BPF programs")
    try:
        run_isolated(lambda: b"it can", TRY_LIMIT_S)
    except (IsolationError, OSError) as error:
        raise Refusal(f"{command} {why_not(error)}") from None


def why_not(error: Exception) -> str:
    """Return the message about a program of ours that could not isolate something."""
    cannot = "cannot make PID, mount and network namespaces here"
    if _NO_MOUNT_POINT in str(error):
        return f"{cannot}: {_NO_MOUNT_POINT}, as in a chroot; {_MEND}"
    return f"{cannot}: {error}; it needs CAP_SYS_ADMIN"
