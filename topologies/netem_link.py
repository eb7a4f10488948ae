"""The emulated link by the kernel's own netem, where there is one.

Two qdiscs in a row per direction, on both sides of a relay (a namespace of the link's own that passes
frames on unchanged), so that the order is that of the contract and neither limit is the other's:

    near end: TBF = droptail queue → relay: netem = serialization at the rate, then delay, no limit → far end

netem alone would count the frames in the delay line against its limit; TBF below netem would delay before
it queues. TBF by itself is no link: after it was idle it lets a burst out at once. Here that burst keeps
netem supplied, which serializes every frame: it is one frame, and what the rate carries in 100 µs, the time
that a timer of the kernel may be late without a loss of rate.
"""

import json
import os
import time
from dataclasses import dataclass
from functools import partial

from fecbench.topologies import netem_shown
from fecbench.topologies.carrier import ensure_carrier
from fecbench.topologies.link import (
    DIRECTIONS,
    FULL_FRAME_BYTES,
    MTU,
    Direction,
    DirectionSettings,
    LinkEnd,
    LinkError,
    LinkSettings,
    QueueLimit,
)
from fecbench.topologies.link_report import (
    DirectionConfiguration,
    DirectionReport,
    LinkConfiguration,
    LinkReport,
)
from fecbench.topologies.namespace import run_in_new, run_inside, run_tool
from fecbench.topologies.netem_clock import Departures, NetemClock
from fecbench.topologies.netem_shown import DELAY_LINE_LIMIT_PACKETS
from fecbench.topologies.offloads import switch_off_merging
from fecbench.topologies.sysctls import QUIET_SYSCTLS, write_sysctls

_LATE_TIMER_S = 100e-6
_SNAPSHOT_INTERVAL_S = 0.005
_DRAIN_MARGIN_S = 1.0


def netem_is_available() -> bool:
    """Whether the kernel has netem (and loads it if it is a module)."""
    try:
        run_in_new(partial(run_tool, ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]))
    except (LinkError, OSError):
        return False
    return True


def queue_commands(interface: str, settings: DirectionSettings, limit: QueueLimit) -> list[str]:
    """tc commands for the droptail queue, which is emptied at the rate, at the egress of `interface`."""
    # With a limit in packets, the queue in bytes that TBF makes by itself is replaced.
    tbf_limit = limit.bytes if limit.bytes is not None else FULL_FRAME_BYTES
    rate = f"rate {settings.rate_bps}bit burst {burst_bytes(settings)}"
    commands = [f"qdisc add dev {interface} root handle 1: tbf {rate} limit {tbf_limit}"]
    if limit.packets is not None:
        commands.append(f"qdisc add dev {interface} parent 1:1 handle 10: pfifo limit {limit.packets}")
    return commands


def delay_commands(interface: str, settings: DirectionSettings) -> list[str]:
    """tc commands for serialization and the delay line, at the egress of `interface`."""
    return [
        # tc up to 6.1 knows no unit below the microsecond, but fractions of it
        f"qdisc add dev {interface} root handle 1: netem delay {settings.delay_ns / 1000:.3f}us"
        f" limit {DELAY_LINE_LIMIT_PACKETS} rate {settings.rate_bps}bit"
    ]


def relay_commands(entrance: str, way_out: str) -> list[str]:
    """tc commands that send every frame that comes in at `entrance` out of `way_out`."""
    return [
        f"qdisc add dev {entrance} clsact",
        f"filter add dev {entrance} ingress protocol all u32 match u32 0 0"
        f" action mirred egress redirect dev {way_out}",
    ]


def burst_bytes(settings: DirectionSettings) -> int:
    return FULL_FRAME_BYTES + round(settings.rate_bps / 8 * _LATE_TIMER_S)


def drain_s(link: LinkSettings) -> float:
    """Return the time that both directions need to drain, from full queues."""
    return max(
        _direction_drain_s(link.of(direction), link.queue_limit(direction)) for direction in DIRECTIONS
    )


def _direction_drain_s(settings: DirectionSettings, limit: QueueLimit) -> float:
    queue_bits = 8 * (limit.bytes or (limit.packets or 0) * FULL_FRAME_BYTES)
    return queue_bits / settings.rate_bps + settings.delay_ns / 1e9


@dataclass(frozen=True)
class _Counters:
    """The counters of one qdisc: frames that it has sent and dropped, and those inside."""

    packets: int
    bytes: int
    drops: int
    queued: int


_Snapshot = dict[Direction, tuple[_Counters, _Counters]]


class NetemLink:
    """Made by the constructor; the ends' interfaces are veths that wait to be configured."""

    backend = "netem"

    def __init__(self, near: LinkEnd, far: LinkEnd, settings: LinkSettings, late_bound_us: int) -> None:
        self._settings = settings
        self._late_bound_us = late_bound_us
        self._clock: NetemClock | None = None
        self._relay: int | None = run_in_new(lambda: os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        self._relay_path = f"/proc/{os.getpid()}/fd/{self._relay}"
        # The end of each direction that has its queue, and the one that has its delay line.
        self._qdiscs: dict[Direction, tuple[LinkEnd, LinkEnd]] = {
            "up": (near, LinkEnd(self._relay_path, "far")),
            "down": (far, LinkEnd(self._relay_path, "near")),
        }
        self._started_s = time.monotonic()
        self._command: list[str] = []
        try:
            run_inside(self._relay_path, partial(write_sysctls, QUIET_SYSCTLS))
            self._connect(near, "near")
            self._connect(far, "far")
            run_inside(self._relay_path, self._prepare_relay)
            for direction, (queue, _) in self._qdiscs.items():
                limit = settings.queue_limit(direction)
                self._tc(queue, queue_commands(queue.interface, settings.of(direction), limit))
            self._clock = NetemClock(near, far, settings, late_bound_us)
        except BaseException:
            self.close()
            raise

    def wait_ready(self) -> None:
        """The constructor has done everything."""

    def start(self, at_ns: int) -> None:
        """Look for the first frame of each direction from this time of CLOCK_MONOTONIC on."""
        assert self._clock
        self._clock.start(at_ns)

    def finish(self) -> LinkReport:
        """Waits until the link has drained, which takes as long as its full queue and delay at most, and
        reports."""
        snapshot = self._drain()
        assert self._clock
        departures = self._clock.finish()
        for direction, (_, line) in snapshot.items():
            frames = departures[direction].frames
            if frames != line.packets:
                raise LinkError(
                    f"the clock of netem saw {frames} frames leave {direction}, and netem sent {line.packets}"
                )
        return LinkReport(
            backend=self.backend,
            version=os.uname().release,
            command=self._command,
            configuration=LinkConfiguration(
                up=self._configuration("up"),
                down=self._configuration("down"),
                mtu=MTU,
            ),
            scheduling=None,
            cpu_s=None,
            elapsed_s=time.monotonic() - self._started_s,
            late_bound_us=self._late_bound_us,
            directions={
                direction: _report(*snapshot[direction], departures[direction]) for direction in DIRECTIONS
            },
        )

    def close(self) -> None:
        """Lets go of the relay, and with it of the ends' interfaces. Idempotent."""
        if self._clock is not None:
            self._clock.close()
        if self._relay is not None:
            os.close(self._relay)
            self._relay = None

    def _connect(self, end: LinkEnd, relay_interface: str) -> None:
        commands = [
            f"link add {end.interface} mtu {MTU} type veth"
            f" peer name {relay_interface} mtu {MTU} netns {self._relay_path}",
            f"link set {end.interface} up",
        ]
        run_inside(end.netns_path, partial(run_tool, ["ip", "-batch", "-"], commands))

    def _prepare_relay(self) -> None:
        run_tool(["ip", "-batch", "-"], ["link set near up", "link set far up"])
        switch_off_merging(["near", "far"])
        commands = relay_commands("near", "far") + relay_commands("far", "near")
        for direction, (_, line) in self._qdiscs.items():
            commands += delay_commands(line.interface, self._settings.of(direction))
        self._run_tc(commands)
        ensure_carrier(["near", "far"])

    def _tc(self, end: LinkEnd, commands: list[str]) -> None:
        run_inside(end.netns_path, partial(self._run_tc, commands))

    def _run_tc(self, commands: list[str]) -> None:
        self._command += commands
        run_tool(["tc", "-batch", "-"], commands)

    def _drain(self) -> _Snapshot:
        deadline = time.monotonic() + drain_s(self._settings) + _DRAIN_MARGIN_S
        before, now, is_over = None, self._snapshot(), False
        # Two equal snapshots: nothing is on its way between two qdiscs either. On a busy machine a snapshot
        # may take so long that its first part is old: so the last one begins when the time is over.
        while not is_over and (now != before or _queued(now)):
            time.sleep(_SNAPSHOT_INTERVAL_S)  # qdiscs announce nothing
            is_over = time.monotonic() >= deadline
            before, now = now, self._snapshot()
        return now

    def _configuration(self, direction: Direction) -> DirectionConfiguration:
        """Return the configuration that the kernel reports. The judge compares it with the one that was
        asked for."""
        requested = configuration_asked(self._settings, direction)
        queue, line = map(_qdisc_json, self._qdiscs[direction])
        return netem_shown.configuration(requested, queue, line)

    def _snapshot(self) -> _Snapshot:
        return {
            direction: (_counters(queue), _counters(line))
            for direction, (queue, line) in self._qdiscs.items()
        }


def configuration_asked(link: LinkSettings, direction: Direction) -> DirectionConfiguration:
    settings, limit = link.of(direction), link.queue_limit(direction)
    return DirectionConfiguration(
        rate_bps=settings.rate_bps,
        delay_ns=settings.delay_ns,
        queue_bytes=limit.bytes,
        queue_packets=limit.packets,
        burst_bytes=burst_bytes(settings),
    )


def _queued(snapshot: _Snapshot) -> int:
    return sum(qdisc.queued for pair in snapshot.values() for qdisc in pair)


def _counters(end: LinkEnd) -> _Counters:
    return root_counters(_qdisc_json(end))


def _qdisc_json(end: LinkEnd) -> str:
    # Raw and with details: else tc does not show all that TBF does.
    show = ["tc", "-statistics", "-details", "-raw", "-json", "qdisc", "show", "dev", end.interface]
    return run_inside(end.netns_path, partial(run_tool, show))


def root_counters(qdiscs: str) -> _Counters:
    """Return the counters of the root in the JSON of `tc -statistics -json qdisc show dev X`."""
    root = next(qdisc for qdisc in json.loads(qdiscs) if qdisc.get("root"))
    return _Counters(root["packets"], root["bytes"], root["drops"], root["qlen"])


def _report(queue: _Counters, line: _Counters, departures: Departures) -> DirectionReport:
    return DirectionReport(
        frames_in=queue.packets + queue.drops + queue.queued,
        bytes_in=None,
        first_in_ns=departures.first_in_ns,
        queue_dropped=queue.drops,
        oversize_dropped=0,
        frames_out=line.packets,
        bytes_out=line.bytes,
        in_flight=queue.queued + line.queued,
        max_queue_bytes=None,
        max_queue_packets=None,
        write_errors=0,
        kernel_dropped=line.drops,
        lateness_us=departures.lateness_us,
        read_lag_us=None,
        late=departures.late,
        late_sum_us=departures.late_sum_us,
        conserved=line.drops == 0 and queue.packets == line.packets + line.queued,
    )
