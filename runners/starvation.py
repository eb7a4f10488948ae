"""How long the endpoints of a trial were kept from running: an endpoint that got no CPU gives a wrong number.

The kernel keeps for each thread how long it was ready to run but did not, and how often it ran
(`/proc/PID/task/TID/schedstat`, in ns). It forgets both when the thread ends, so they are read every
`INTERVAL_S`. Every packet that wakes a thread makes it wait a little, on an idle machine too: that does not
delay a download as a whole. A stall does. It is a wait in one interval that is much longer than usual.
"""

import os
import time
from collections.abc import Collection
from pathlib import Path

INTERVAL_S = 0.01
# What a thread waits for each time that it runs, at most, when nothing else wants the CPU.
USUAL_WAIT_NS = 100_000
STALL_AT_LEAST_NS = 2_000_000


def is_known() -> bool:
    """Whether this kernel keeps the waits of threads (CONFIG_SCHED_INFO)."""
    return Path("/proc/thread-self/schedstat").exists()


class Watch:
    """Notes the stalls of all threads of some sessions from now on.

    Stalls of several threads in the same interval count as the longest of them. A program that moves to a
    session of its own is not seen.
    """

    def __init__(self, sessions: Collection[int]) -> None:
        self._sessions = sessions
        self._seen: dict[str, tuple[int, int]] = {}  # file of a thread → its waits in ns, how often it ran
        self._stalls: list[tuple[float, int]] = []  # seconds of the monotonic clock, ns
        self.sample()
        self._stalls.clear()  # what was before is no matter

    def sample(self) -> None:
        """Note the longest stall since the last sample."""
        self._sampled_at = time.monotonic()
        longest_ns = max((self._stall_ns(file) for file in self._files()), default=0)
        if longest_ns > STALL_AT_LEAST_NS:
            self._stalls.append((self._sampled_at, longest_ns))

    def stalled_s(self, begun_at: float, ended_at: float) -> float:
        """The stalls between two times of the monotonic clock; `ended_at` has just passed.

        What happened between the last sample and the end may be unknown, since threads have ended. It is a
        stall where it took longer than an interval: whoever had to take that sample was kept from running.
        """
        unseen_s = max(0.0, ended_at - self._sampled_at - INTERVAL_S)
        self.sample()
        return unseen_s + sum(stall_ns for at, stall_ns in self._stalls if at > begun_at) / 1e9

    def _stall_ns(self, file: str) -> int:
        """How much longer than usual the thread has waited since the last sample."""
        waited_ns, ran = self._seen.get(file, (0, 0))
        try:
            self._seen[file] = _waits(file)
        except (FileNotFoundError, ProcessLookupError):
            return 0  # it has just ended
        return self._seen[file][0] - waited_ns - USUAL_WAIT_NS * (self._seen[file][1] - ran)

    def _files(self) -> list[str]:
        """Where the kernel tells of each thread."""
        files = []
        for process in os.scandir("/proc"):
            try:
                if process.name.isdigit() and os.getsid(int(process.name)) in self._sessions:
                    threads = os.scandir(f"{process.path}/task")
                    files += [f"{thread.path}/schedstat" for thread in threads]
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended
        return files


def _waits(file: str) -> tuple[int, int]:
    """How long a thread has waited to run, in ns, and how often it has run."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _, waited_ns, ran = os.read(descriptor, 100).split()
    finally:
        os.close(descriptor)
    return int(waited_ns), int(ran)
