"""A campaign in virtual time and its emulated sample, whose trials end as a test says."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fecbench.results.analysis import agreement
from fecbench.results.analysis.agreement import Agreement, Comparison
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, State, TrialKey, TrialRecord, VerdictLog, Workload
from tests.support.campaigns import new_campaign, variants

OFF, XOR = "off", "xor"
POINTS = 16
ON_TIME, QOE = "messages.on_time_ratio_100ms", "video.qoe_lin"


class Ended(NamedTuple):
    """The end of a trial, and its measurements."""

    state: State
    dct_s: float
    handshake_s: float
    on_time: float = 1.0
    qoe: float = 1.0
    sent_bytes: float = 12_000
    sent_packets: float = 12
    lost: bool = True
    packets_lost: int | None = None
    """Lost packets of eight; None: those of the campaign."""
    stalled_s: float = 0.0


Run = Callable[[TrialKey], Ended]


def as_it_is(key: TrialKey) -> Ended:
    """A trial that takes longer at each point, and with XOR a little less long."""
    return Ended("ok", (0.3 + 0.01 * key.point) * (0.9 if key.variant == XOR else 1), 0.11)


def times(factor: float, handshake: float = 1.0, variant: str = "") -> Run:
    """Return ends of trials that take `factor` times as long, of one variant or of all."""

    def ended(key: TrialKey) -> Ended:
        result = as_it_is(key)
        is_meant = variant in ("", key.variant)
        dct_s = result.dct_s * (factor if is_meant else 1)
        return result._replace(dct_s=dct_s, handshake_s=result.handshake_s * handshake)

    return ended


def but(state: State, variant: str = OFF, point: int = 0) -> Run:
    """Return the usual ends, but for one trial, which ends in another state."""
    return lambda key: (
        as_it_is(key)._replace(state=state) if (key.variant, key.point) == (variant, point) else as_it_is(key)
    )


class Laboratory:
    """A database with a campaign in virtual time, and a sample of it that was emulated."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._compared = 0

    def compare(
        self,
        virtual: Run = as_it_is,
        emulated: Run = as_it_is,
        *,
        points: int = POINTS,
        size_bytes: int = 10_000,
        owd_ms: float = 50,
        metric: str = "client.dct_s",
        bitmaps: tuple[bytes, bytes] = (b"\x01", b"\x01"),
        planned: int | None = None,
        arms: Sequence[str] = (),
        elsewhere: int = 0,
    ) -> Agreement:
        """Return the agreement. At so many points, another host emulated the trials of XOR: `elsewhere`."""
        self._compared += 1
        campaign_name = "x" if self._compared == 1 else f"x{self._compared}"
        trials = 2 * points
        of_sample = {
            "campaign": campaign_name,
            "share": 0.5,
            "trials": trials if planned is None else planned,
            **({"arms": list(arms)} if arms else {}),
        }
        campaigns = []
        for name, provenance, run, bitmap in (
            (campaign_name, {"engine": "virtual"}, virtual, bitmaps[0]),
            (
                f"{campaign_name}-crosscheck",
                {"engine": "local", "crosscheck": of_sample},
                emulated,
                bitmaps[1],
            ),
        ):
            campaign = self._campaign(name, provenance, points, size_bytes, metric)
            campaigns.append(campaign)
            keys = [
                TrialKey(variant, f"download-{size_bytes}", point, 0)
                for point in range(points)
                for variant in (OFF, XOR)
            ]
            for host in ("ada", "bob"):
                of_host = [k for k in keys if (host == "bob") == (k.variant == XOR and k.point < elsewhere)]
                records = [record(key, run(key), size_bytes, owd_ms, bitmap) for key in of_host]
                if records:
                    start = self.database.start(campaign.id, host, provenance)
                    self.database.record_all(campaign.id, records, start.id)
        result = agreement.of_campaign(self.database, campaigns[0])
        assert result is not None
        return result

    def _campaign(
        self, name: str, provenance: Any, points: int, size_bytes: int, metric: str
    ) -> CampaignInfo:
        label, parameters = f"download-{size_bytes}", {"size_bytes": size_bytes}
        return self.database.create_campaign(
            new_campaign(
                name,
                provenance=provenance,
                points=[{"loss.p": 0.01 * point} for point in range(points)],
                variants=variants(OFF, XOR),
                workloads=[Workload(label=label, name="download", parameters=parameters, metric=metric)],
            )
        )


def record(key: TrialKey, result: Ended, size_bytes: int, owd_ms: float, bitmap: bytes) -> TrialRecord:
    measured = {
        "client": {"dct_s": result.dct_s, "handshake_s": result.handshake_s},
        "server": {"bytes_sent": result.sent_bytes, "packets_sent": result.sent_packets},
        "messages": {ON_TIME.partition(".")[2]: result.on_time},
        "video": {QOE.partition(".")[2]: result.qoe},
    }
    direction = {"owd_ms": owd_ms}
    if result.packets_lost is not None:
        bitmap = bytes([(1 << result.packets_lost) - 1])
    verdicts = VerdictLog("internet", "down", 8, bitmap[0].bit_count(), bitmap) if result.lost else None
    return TrialRecord(
        key,
        result.state,
        "",
        "2026-01-01T00:00:00Z",
        1.0,
        metrics=measured if result.state == "ok" else {},
        verdicts=[verdicts or VerdictLog("internet", "down", 8, 0, b"\0")],
        checks={"stalled_s": result.stalled_s},
        task={
            "links": {"internet": {"settings": {"up": direction, "down": direction}}},
            "pairs": [{"demand": {"up_bytes": 0, "down_bytes": size_bytes}}],
        },
    )


def one(result: Agreement, variant: str, metric: str = "client.dct_s", *, ratio: bool = False) -> Comparison:
    (comparison,) = [
        item
        for item in result.comparisons
        if (item.variant, item.metric, item.baseline is not None) == (variant, metric, ratio)
    ]
    return comparison
