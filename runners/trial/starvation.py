"""Times for which the endpoints of a trial could not run: an endpoint without a CPU gives a wrong number.

The kernel counts for each thread how long it was ready to run but did not run, and how often it ran
(`/proc/PID/task/TID/schedstat`, in ns). It forgets both when the thread ends, so they are read every
`INTERVAL_S`. Every packet that wakes a thread makes it wait a little, even on an idle machine: this does
not delay a whole download. A stall does. A stall is a wait that is much longer than usual in one interval,
or an interval that itself is much too long: the watching thread could not run then, so perhaps nothing else
could. A program that a signal stopped is not ready to run, so it waits for nothing: the intervals in which
it stands still count as stalls.

Time that a hypervisor steals of a CPU (`steal` in /proc/stat) is not a wait of a thread: the CPU stood still.
"""

import math
import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

INTERVAL_S = 0.01
# Longest wait of a thread each time that it runs, if nothing else needs the CPU.
USUAL_WAIT_NS = 100_000
STALL_AT_LEAST_NS = 2_000_000
# Longest usual time between two samples.
GAP_AT_LEAST_S = 2 * INTERVAL_S
STAT = Path("/proc/stat")
_STEAL = 8  # the column of it
_STOPPED = (b"T", b"t")  # by a signal, or by a debugger


def is_known() -> bool:
    """Whether this kernel keeps the waits of threads (CONFIG_SCHED_INFO)."""
    return Path("/proc/thread-self/schedstat").exists()


def stolen_s() -> dict[str, float]:
    """Return how long a hypervisor has stopped each CPU so far, by the CPU's name."""
    lines = [line.split() for line in STAT.read_text(encoding="utf-8").splitlines()]
    ticks = {line[0]: int(line[_STEAL]) for line in lines if line[0].startswith("cpu") and line[0] != "cpu"}
    return {cpu: count / os.sysconf("SC_CLK_TCK") for cpu, count in ticks.items()}


class Thread:
    """A thread whose waits are read again and again; its file stays open, since opening it costs the most."""

    def __init__(self, path: str) -> None:
        self._file = os.open(f"{path}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        # A signal stops all threads of a process: the first one tells it. A second file that stays open would
        # be too many where an endpoint forks without end.
        *_, process, _, thread = path.split("/")
        self._state = f"{path}/stat" if process == thread else None
        self._waited_ns = self._ran = 0

    def stall_ns(self) -> int:
        """Return how much longer than usual the thread has waited since the last call. Raises
        ProcessLookupError."""
        _, waited, ran = os.pread(self._file, 100, 0).split()
        waited_ns, times = int(waited) - self._waited_ns, int(ran) - self._ran
        self._waited_ns, self._ran = int(waited), int(ran)
        return waited_ns - USUAL_WAIT_NS * times

    def is_stopped(self) -> bool:
        """Whether its process stands still. Raises ProcessLookupError."""
        if self._state is None:
            return False
        try:
            status = Path(self._state).read_bytes()
        except FileNotFoundError as error:
            raise ProcessLookupError from error
        # The state follows the name of the program, which is in brackets, and may contain some.
        return status.rpartition(b") ")[2][:1] in _STOPPED

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True)
class Stall:
    """A time for which somebody could not run, in an interval of the monotonic clock."""

    begun_at: float
    ended_at: float
    lasted_s: float

    def within_s(self, begun_at: float, ended_at: float) -> float:
        """Return the largest part of the stall that can lie between these times."""
        return max(0.0, min(self.lasted_s, min(self.ended_at, ended_at) - max(self.begun_at, begun_at)))


class Watch:
    """Notes the stalls of all threads of some sessions from now on. A context manager.

    Stalls of several threads in the same interval count as the longest of them. A program that moves to a
    session of its own is not seen if it has done so before it is found.
    """

    def __init__(self, sessions: Collection[int]) -> None:
        self._sessions = set(sessions)
        self._threads: dict[str, Thread] = {}
        self._newest = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        self._newest_found = b""
        self._stalls: list[Stall] = []
        self._sampled_at = time.monotonic()
        self.longest_gap_s = 0.0
        self._stolen_before = stolen_s()
        self.sample()
        self._stalls.clear()  # ignored: it happened before

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads.values():
            thread.close()
        os.close(self._newest)

    def add(self, session: int) -> None:
        """Note the stalls of a session that began later, too."""
        self._sessions.add(session)
        self._newest_found = b""

    @property
    def is_due(self) -> bool:
        """Whether the next sample should be taken."""
        return time.monotonic() - self._sampled_at >= INTERVAL_S

    def sample(self) -> None:
        """Note the longest stall since the last sample."""
        self._sample(time.monotonic())

    def _sample(self, now: float) -> None:
        begun_at, self._sampled_at = self._sampled_at, now
        self._find_new()
        gap_s = self._sampled_at - begun_at
        longest_ns = max((self._stall_ns(path, gap_s) for path in list(self._threads)), default=0)
        stall_s = longest_ns / 1e9 if longest_ns > STALL_AT_LEAST_NS else 0.0
        if gap_s > GAP_AT_LEAST_S:
            self.longest_gap_s = max(self.longest_gap_s, gap_s)
            stall_s = max(stall_s, gap_s - INTERVAL_S)
        if stall_s > 0:
            self._stalls.append(Stall(begun_at, self._sampled_at, stall_s))

    def stalled_s(self, begun_at: float, ended_at: float) -> float:
        """The stalls between two times of the monotonic clock; `ended_at` has just passed.

        The waits between the last sample and the end may be unknown, because threads have ended. A gap that
        is too long counts as a stall.
        """
        self._sample(ended_at)
        return self.within_s(begun_at, ended_at)

    def within_s(self, begun_at: float, ended_at: float) -> float:
        """The stalls that have been noted between two times of the monotonic clock."""
        return sum(stall.within_s(begun_at, ended_at) for stall in self._stalls)

    def hindered_s(self) -> float:
        """Return how long somebody may have been unable to run since the watch began, for any reason."""
        return max(self.stalled_s(-math.inf, time.monotonic()), self.stolen_s())

    def stolen_s(self) -> float:
        """Return how long a hypervisor has stopped a CPU since the watch began: the CPU that lost the most.

        At any moment a transfer waits for one CPU. Nobody records which one; time stolen of the others does
        not delay it.
        """
        now = stolen_s()
        return max(
            (now[cpu] - before for cpu, before in self._stolen_before.items() if cpu in now), default=0
        )

    def _stall_ns(self, path: str, gap_s: float) -> int:
        """Return how much longer than usual a thread has waited since the last sample, or the gap if it stood
        still."""
        thread = self._threads[path]
        try:
            return max(thread.stall_ns(), round(gap_s * 1e9) if thread.is_stopped() else 0)
        except ProcessLookupError:  # it has ended
            thread.close()
            del self._threads[path]
            return 0

    def _find_new(self) -> None:
        """Look for threads only if any was made: the last number of /proc/loadavg is the newest's id here."""
        newest = os.pread(self._newest, 100, 0).split()[-1]
        if newest == self._newest_found:
            return
        self._newest_found = newest
        for process in os.scandir("/proc"):
            try:
                if process.name.isdigit() and os.getsid(int(process.name)) in self._sessions:
                    for thread in os.scandir(f"{process.path}/task"):
                        if thread.path not in self._threads:
                            self._threads[thread.path] = Thread(thread.path)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
