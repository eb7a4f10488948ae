"""Every metric that is known: its name, its unit, what it means, and which direction is better.

A metric is a number of a trial. In frames it is named by who reports it (`client.dct_s`); what the harness
measures stands beside the trial (`stalled_s`), or is of one direction of a link (`internet.up.lost`). An
endpoint may report metrics that are not registered: these have the unit that their name ends with, and no
better direction.

Only this file, the workloads and the papers' packages name metrics: figures, tables and sentences take words
and units from here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from fecbench.results.analysis.units import UNITS, unit_of

if TYPE_CHECKING:
    from fecbench.results.store.records import CampaignInfo, Workload

Better = Literal["less", "more"]
By = Literal["client", "server", "client and server", "harness", "link"]

DEFAULT = "client.dct_s"
"""What is compared in a workload that names no metric, as none of the oldest databases does."""

HANDSHAKE = "client.handshake_s"
"""What virtual time and emulation are compared by in every workload, beside what the workload compares."""

ENDPOINTS = ("client", "server", "background_client", "background_server")
"""The background is a transfer that competes with the measured one."""

SOURCES = (*ENDPOINTS, "competition", "messages", "video")
"""What stands before the dot of a metric's name, but for those of links."""

_TIMES = {UNITS[suffix] for suffix in ("s", "ms", "us")}


class Comparative(NamedTuple):
    """What a variant is where its metric is better than the baseline's, and where it is worse."""

    gain: str
    harm: str


@dataclass(frozen=True)
class Metric:
    """A number of a trial."""

    name: str
    """As who reports it names it (`dct_s`); of a metric that `of` gives, as in frames (`client.dct_s`)."""
    unit: str
    """As people write it; "" for a number without one."""
    meaning: str
    """In a sentence; "" where nobody has said."""
    better: Better | None
    """Which direction is better; None where neither is."""
    by: By | None
    """Who measures it; None where that is not known."""
    words: str = ""
    """For sentences and axes, a noun in the singular ("download completion time"); "" where there is none."""
    short: str = ""
    """An abbreviation that readers of the field know."""
    asked: str = ""
    """The question that a figure of its values answers, where there is one that reads better than "how
    large"."""
    absent_is_worst: bool = False
    """A trial that is ok lacks it only where it would be worse than any value, as a percentile of latencies
    is that falls on a message lost."""
    is_share: bool = False
    """Whether it is a share of something, from 0 to 1."""

    @property
    def more_is_better(self) -> bool:
        """Of a metric without a better direction, less counts as the gain."""
        return self.better == "more"

    @property
    def worst(self) -> float:
        """What a trial that failed or timed out counts as: worse than any value."""
        return -math.inf if self.more_is_better else math.inf

    @property
    def is_time(self) -> bool:
        return self.unit in _TIMES

    @property
    def comparative(self) -> Comparative:
        """How a variant compares with the baseline."""
        if self.better is None:
            return Comparative("lower", "higher")
        is_faster = self.is_time and self.better == "less"
        return Comparative("faster", "slower") if is_faster else Comparative("better", "worse")

    @property
    def sides(self) -> tuple[str, str]:
        """How a variant compares with the baseline where their ratio is below 1, and where it is above."""
        gain, harm = self.comparative
        return (harm, gain) if self.more_is_better else (gain, harm)

    @property
    def question(self) -> str:
        """For a figure of its values."""
        return self.asked or f"How large is {self.noun}?"

    @property
    def noun(self) -> str:
        """For a sentence: "the DCT"; its name where there are no words for it."""
        return f"the {self.short or self.words}{self._where}" if self.words else self.name

    @property
    def example(self) -> str:
        """For a sentence about any of its values: "a DCT"."""
        article = "an" if self.words.startswith(("a", "e", "i", "o")) else "a"
        return f"{article} {self.short or self.words}{self._where}" if self.words else self.name

    def statistic(self, name: str) -> str:
        """What a statistic of it is called: "median DCT"."""
        return f"{name} {self.short}" if self.short else f"{name} of {self.noun}"

    @property
    def title(self) -> str:
        """For an axis, with its unit: "download completion time (s)"."""
        unit = "" if self.unit in self.words.split() else self.unit
        remarks = ", ".join(filter(None, [self._reporter if self.words else "", unit]))
        return f"{self.words or self.name} ({remarks})" if remarks else self.words or self.name

    @property
    def ratio(self) -> str:
        """What a ratio of it is called, without an article: "DCT ratio"."""
        return f"{self.short} ratio" if self.short else f"ratio of {self.noun}"

    def ratio_to(self, baseline: str) -> str:
        """For an axis of ratios: "DCT / DCT of BASELINE"."""
        divided = self.short or f"{self.words or self.name}{self._where if self.words else ''}"
        return f"{divided} / {self.short or 'that'} of {baseline}"

    @property
    def _reporter(self) -> str:
        """The endpoint, where the words alone would leave it open."""
        source = self.name.partition(".")[0]
        told_apart = self.by == "client and server" or source.startswith("background")
        return source.replace("_", " ") if source in ENDPOINTS and told_apart else ""

    @property
    def _where(self) -> str:
        return f" ({self._reporter})" if self._reporter else ""


# By the contract with implementations (quic-impls/contract/metrics.md), in its order.
_OF_TRANSFERS = (
    Metric(
        "dct_s",
        "s",
        "Download completion time, from just before the connection's first datagram is sent to the last"
        " verified byte; of an upload to the server's confirmation, of a page until its last object is"
        " processed, of requests until their input ended. Of a client of the interop contract the harness"
        " timed it (`timed_by` of the trial's checks): from the first frame that the link saw to the close of"
        " the file.",
        "less",
        "client",
        "download completion time",
        "DCT",
        "How long do downloads take?",
    ),
    Metric(
        "handshake_s",
        "s",
        "From just before the connection's first datagram is sent to the end of the handshake; of a page, to"
        " that of its first connection.",
        "less",
        "client",
        "handshake time",
    ),
    Metric(
        "packets_sent",
        "packets",
        "QUIC packets sent, without those with repair symbols.",
        None,
        "client and server",
        "number of packets sent",
    ),
    Metric(
        "packets_lost",
        "packets",
        "Packets sent that QUIC declared lost before it knew that the peer had rebuilt them, without repair"
        " packets.",
        "less",
        "client and server",
        "number of packets declared lost",
    ),
    Metric(
        "losses_declared",
        "packets",
        "All packets of which congestion control was told that they are lost, rebuilt ones and repair packets"
        " included.",
        "less",
        "client and server",
        "number of losses that congestion control was told of",
    ),
    Metric(
        "packets_received",
        "packets",
        "QUIC packets received, recovered ones included and those with repair symbols not.",
        None,
        "client and server",
        "number of packets received",
    ),
    Metric(
        "bytes_sent",
        "bytes",
        "UDP payload sent on the wire, all included.",
        None,
        "client and server",
        "number of bytes sent",
    ),
    Metric(
        "bytes_received",
        "bytes",
        "UDP payload received from the wire, all included.",
        None,
        "client and server",
        "number of bytes received",
    ),
    Metric(
        "smoothed_rtt_ms",
        "ms",
        "QUIC's estimate of the round-trip time at the end; of several connections, the last one's.",
        "less",
        "client and server",
        "smoothed RTT",
    ),
    Metric(
        "spurious_losses",
        "packets",
        "Packets declared lost that arrived after all, or that the peer turned out to have rebuilt.",
        "less",
        "client and server",
        "number of packets declared lost that were not",
    ),
    Metric(
        "waited_for_window_s",
        "s",
        "For how long TCP sent nothing since its peer's receive window was full.",
        "less",
        "client and server",
        "time that TCP waited for the receive window",
    ),
    Metric(
        "waited_for_buffer_s",
        "s",
        "For how long TCP sent nothing since its send buffer was too small to hold more.",
        "less",
        "client and server",
        "time that TCP waited for its send buffer",
    ),
    Metric(
        "source_sent",
        "packets",
        "Source packets sent: those that FEC protects; 0 with FEC off.",
        None,
        "client and server",
        "number of source packets sent",
    ),
    Metric(
        "repair_sent",
        "packets",
        "Repair packets sent; 0 with FEC off.",
        None,
        "client and server",
        "number of repair packets sent",
    ),
    Metric(
        "source_received",
        "packets",
        "Source packets received; 0 with FEC off.",
        None,
        "client and server",
        "number of source packets received",
    ),
    Metric(
        "repair_received",
        "packets",
        "Repair packets received; 0 with FEC off.",
        None,
        "client and server",
        "number of repair packets received",
    ),
    Metric(
        "packets_recovered",
        "packets",
        "Source packets rebuilt from repair symbols that never came themselves.",
        None,
        "client and server",
        "number of packets recovered",
    ),
    Metric(
        "recovered_spurious",
        "packets",
        "Source packets rebuilt from repair symbols that came themselves after all: they were merely late.",
        "less",
        "client and server",
        "number of packets recovered that came after all",
    ),
    Metric(
        "repair_useless",
        "packets",
        "Repair packets received from which nothing was rebuilt.",
        "less",
        "client and server",
        "number of useless repair packets",
    ),
    Metric(
        "recovered_late",
        "packets",
        "Rebuilt packets whose recovery saved nothing: they came themselves after all, or their data had"
        " come, or was on its way, in another packet.",
        "less",
        "client and server",
        "number of packets recovered late",
    ),
    Metric(
        "recovered_in_time",
        "packets",
        "Rebuilt packets but for the late ones: what FEC is judged by.",
        "more",
        "client and server",
        "number of packets recovered in time",
    ),
)

# Of the workload `page`.
_OF_PAGES = (
    Metric(
        "first_object_s",
        "s",
        "From just before the connection's first datagram is sent to the last byte of the object that was"
        " whole first.",
        "less",
        "client",
        "time to the first object",
    ),
    Metric("objects", "objects", "Objects of the page.", None, "client", "number of objects"),
    Metric("connections", "connections", "Connections opened.", None, "client", "number of connections"),
)

# Of our implementations, beyond the contract (their READMEs).
_OF_RQUIC = (
    Metric(
        "recovered_out_of_order",
        "packets",
        "Rebuilt packets whose place in the order had gone: newer packets had been let through.",
        "less",
        "client and server",
        "number of packets recovered out of order",
    ),
    Metric(
        "overhead",
        "",
        "Coded packets divided by source and coded packets sent: Ô of rQUIC's equation (5), from 0 to 1.",
        "less",
        "client and server",
        "overhead",
        is_share=True,
    ),
    Metric(
        "code_rate_mean",
        "",
        "Source packets sent divided by coded packets sent: the mean Q of rQUIC's equation (6).",
        None,
        "client and server",
        "mean code rate Q",
    ),
    Metric(
        "residual_loss",
        "",
        "Protected packets that QUIC declared lost, divided by those that it saw acknowledged.",
        "less",
        "client and server",
        "residual loss",
    ),
    Metric(
        "protected_delivered",
        "packets",
        "Protected packets that QUIC saw acknowledged.",
        None,
        "client and server",
        "number of protected packets acknowledged",
    ),
    Metric(
        "protected_lost",
        "packets",
        "Protected packets that QUIC declared lost.",
        "less",
        "client and server",
        "number of protected packets declared lost",
    ),
    Metric(
        "generations_sent",
        "generations",
        "Generations that were completed.",
        None,
        "client and server",
        "number of generations sent",
    ),
    Metric(
        "generation_size_min",
        "packets",
        "Source packets in the smallest generation that was completed.",
        None,
        "client and server",
        "size of the smallest generation",
    ),
    Metric(
        "generation_size_max",
        "packets",
        "Source packets in the largest generation that was completed.",
        None,
        "client and server",
        "size of the largest generation",
    ),
    Metric(
        "malformed_received",
        "packets",
        "Datagrams that were dropped, since their rQUIC header cannot be read or their code is another, and"
        " recovered symbols that are no packets.",
        "less",
        "client and server",
        "number of malformed packets received",
    ),
)
_OF_NOQ_FEC = (
    Metric(
        "window_reductions",
        "",
        "How often losses made the congestion window smaller.",
        "less",
        "client and server",
        "number of window reductions",
    ),
    Metric(
        "window_restorations",
        "",
        "How often the congestion window came back, because a loss had been none, or was recovered and"
        " masked.",
        None,
        "client and server",
        "number of window restorations",
    ),
    Metric(
        "congestion_window_bytes",
        "bytes",
        "The congestion window at the end.",
        None,
        "client and server",
        "congestion window",
    ),
    Metric(
        "recovered_by_peer",
        "packets",
        "Packets of which the peer told that it recovered them.",
        None,
        "client and server",
        "number of packets recovered by the peer",
    ),
    Metric(
        "useless_retransmissions",
        "packets",
        "Packets that the peer recovered, but whose data was sent again before it told.",
        "less",
        "client and server",
        "number of useless retransmissions",
    ),
)

_PLAYOUT = "PLAYOUT"
"""In names of the registry, this stands for a playout delay: `on_time_ratio_100ms`."""

# Of the workload `messages`: the harness computes them from what both ends noted (`workloads/messages/`).
_OF_MESSAGES = (
    *(
        Metric(
            f"messages.latency_p{percent}_ms",
            "ms",
            f"From when a message was due until it was whole; {percent} % of messages took no longer. None"
            " where that falls on a message that never was whole: comparisons take it for infinite.",
            "less",
            "harness",
            f"{percent}th percentile of the latency of messages",
            f"p{percent} latency",
            absent_is_worst=True,
        )
        for percent in (50, 95, 99)
    ),
    Metric(
        "messages.latency_max_ms",
        "ms",
        "The longest time from when a message was due until it was whole, of those that ever were.",
        "less",
        "harness",
        "greatest latency of messages",
        absent_is_worst=True,
    ),
    Metric(
        f"messages.on_time_ratio_{_PLAYOUT}ms",
        "",
        "Share of all messages that were whole within this playout delay after they were due.",
        "more",
        "harness",
        f"share of messages whole within {_PLAYOUT} ms",
        "",
        f"How many messages are whole within {_PLAYOUT} ms?",
        is_share=True,
    ),
    Metric(
        "messages.rebuffering_s",
        "s",
        "Messages that were not whole when Michel's reader (2018, §5.1.5) wanted them, times the mean time"
        " between messages. It reads each when the first bytes of the fourth one, itself the first, can be"
        " there.",
        "less",
        "harness",
        "re-buffering time",
        "",
        "For how long does the receiver re-buffer?",
    ),
    Metric(
        "messages.rebuffering_2_s",
        "s",
        "The same of a reader whose buffer takes two messages instead of four (§5.7).",
        "less",
        "harness",
        "re-buffering time with a buffer of 2 messages",
    ),
    Metric(
        "messages.received_bytes",
        "bytes",
        "Bytes of messages that the reader with a buffer of four got, those of messages that were not whole"
        " included: without streams it goes on when bytes of a later message let it.",
        "more",
        "harness",
        "amount of data received",
    ),
    Metric(
        "messages.received_2_bytes",
        "bytes",
        "The same of a reader whose buffer takes two messages.",
        "more",
        "harness",
        "amount of data received with a buffer of 2 messages",
    ),
    Metric(
        "messages.freezes",
        "",
        "How often a frame was followed by the next only after max(3 · mean, mean + 150 ms), the mean of the"
        " durations of 30 frames, as W3C's webrtc-stats counts freezes. At 30 Hz a single lost message is"
        " none. The time before the first frame counts, and the last one stands until the stream should have"
        " ended, so a stream that dies is frozen.",
        "less",
        "harness",
        "number of freezes",
    ),
    Metric(
        "messages.freeze_s",
        "s",
        "How long these frames stood, in all.",
        "less",
        "harness",
        "time frozen",
    ),
    Metric(
        "messages.messages_lost",
        "messages",
        "Messages that never were whole.",
        "less",
        "harness",
        "number of messages lost",
    ),
    Metric(
        "messages.messages_partial",
        "messages",
        "Of the messages lost, those of which a part arrived.",
        "less",
        "harness",
        "number of messages that were lost in part",
    ),
    Metric(
        "messages.messages_late",
        "messages",
        "Messages that were whole, but later than the reader with a buffer of four wanted them.",
        "less",
        "harness",
        "number of messages late",
    ),
    Metric(
        "messages.messages_sent_late",
        "messages",
        "Messages that their sender handed over more than 5 ms after they were due.",
        "less",
        "harness",
        "number of messages sent late",
    ),
    Metric(
        "messages.send_lag_max_ms",
        "ms",
        "The longest time from when a message was due until its sender had handed it over.",
        "less",
        "harness",
        "greatest lag of the sender",
    ),
    Metric(
        "messages.overhead",
        "",
        "UDP payload that came to the links in the direction of the messages, divided by the bytes of all"
        " messages; none where the backend does not know.",
        "less",
        "harness",
        "bytes sent per byte of the messages",
    ),
)

# Of endpoints, in the workload `messages`.
_OF_SENDING_MESSAGES = (
    Metric(
        "datagrams_dropped",
        "datagrams",
        "Datagrams that the sender's stack discarded of its own accord.",
        "less",
        "client and server",
        "number of datagrams that the sender discarded",
    ),
    Metric(
        "datagrams_unsent",
        "datagrams",
        "Datagrams that were handed over and still waited in the sender when the connection ended.",
        "less",
        "client and server",
        "number of datagrams not sent",
    ),
    Metric(
        "datagrams_overflowed",
        "datagrams",
        "Datagrams that came, and that the receiver's stack discarded.",
        "less",
        "client and server",
        "number of datagrams that the receiver discarded",
    ),
    Metric(
        "messages_reset",
        "messages",
        "Messages whose stream the sender reset at their deadline.",
        "less",
        "client and server",
        "number of messages reset",
    ),
)

_RESOLUTION = "RESOLUTION"
"""In names of the registry, this stands for the size of a picture: `share_1280x720`."""

# Of the workload `video`: the harness computes them from the session of each trial (`workloads/video/`).
_OF_VIDEO = (
    Metric(
        "video.mean_kbps",
        "kbit/s",
        "The mean bit rate of the levels of all segments that arrived.",
        "more",
        "harness",
        "mean bit rate of the video",
        "",
        "How good is the picture?",
    ),
    Metric(
        "video.startup_s",
        "s",
        "From when the viewer asked for the video until its first picture; none where there never was one.",
        "less",
        "harness",
        "time before the first picture",
        "",
        "How long does a viewer wait for the first picture?",
        absent_is_worst=True,
    ),
    Metric(
        "video.stalls",
        "stalls",
        "How often the picture stood still since nothing more had arrived.",
        "less",
        "harness",
        "number of stalls",
    ),
    Metric(
        "video.stall_s",
        "s",
        "For how long the picture stood still in all, without the time before the first picture.",
        "less",
        "harness",
        "time in which the picture stood still",
    ),
    Metric(
        "video.stall_ratio",
        "",
        "That time divided by itself and the time that was played; none where nothing was.",
        "less",
        "harness",
        "share of time in which the picture stood still",
        "",
        "For how much of the time does the picture stand still?",
        absent_is_worst=True,
        is_share=True,
    ),
    Metric(
        "video.switches",
        "changes",
        "How often a segment had another level than the one before.",
        "less",
        "harness",
        "number of changes of the level",
    ),
    Metric(
        "video.qoe_lin",
        "Mbit/s",
        "Quality of experience (Yin et al. 2015, balanced) a segment: the mean bit rate, less the mean of all"
        " changes of it, less 3 Mbit/s for each second without a picture, divided by the segments. It may be"
        " negative, so compare differences, not ratios.",
        "more",
        "harness",
        "quality of experience by the bit rate",
        "QoE",
        "What is the session worth to a viewer?",
    ),
    Metric(
        "video.qoe_log",
        "",
        "The same by the logarithm of the bit rate over that of the lowest level, with a weight of 2.66 for"
        " each second without a picture (Mao et al. 2017).",
        "more",
        "harness",
        "quality of experience by the logarithm of the bit rate",
    ),
    Metric(
        f"video.share_{_RESOLUTION}",
        "",
        "Share of the segments that arrived whose picture has this size.",
        None,
        "harness",
        f"share of segments of {_RESOLUTION}",
        is_share=True,
    ),
    Metric(
        "video.objects",
        "objects",
        "Segments that arrived, of live video chunks.",
        None,
        "harness",
        "number of segments that arrived",
    ),
    Metric(
        "video.given_up",
        "segments",
        "Segments that the player gave up while they came, and asked for at a lower level.",
        None,
        "harness",
        "number of segments given up",
    ),
    Metric(
        "video.given_up_bytes",
        "bytes",
        "What had come of them.",
        "less",
        "harness",
        "bytes of segments given up",
    ),
    Metric(
        "video.unplayed_s",
        "s",
        "Video that was never shown, since the viewer left before.",
        "less",
        "harness",
        "length of the video that was never shown",
    ),
    Metric(
        "video.request_lag_p99_ms",
        "ms",
        "By how much the client read a request later than the player had decided it: 99 % of requests were"
        " not later. 0 in virtual time; above 2 ms, this machine took part in the session.",
        "less",
        "harness",
        "99th percentile of the lag of requests",
    ),
    *(
        Metric(
            f"video.latency_p{percent}_s",
            "s",
            f"How late live video was shown after it was taken: for {percent} % of the time no later.",
            "less",
            "harness",
            f"{percent}th percentile of the latency of live video",
            f"p{percent} live latency",
            absent_is_worst=True,
        )
        for percent in (50, 95)
    ),
    Metric(
        "video.skipped_s",
        "s",
        "Live video that was passed over since the player was far too late.",
        "less",
        "harness",
        "length of the live video that was passed over",
    ),
)

_OF_HARNESS = (
    Metric(
        "competition.filling_s",
        "s",
        "From the start of a competing transfer until it had filled the link.",
        None,
        "harness",
        "time until the link was full",
    ),
    Metric(
        "competition.foreground_mbps",
        "Mbit/s",
        "What came in at the measured client while it ran beside a competing one, all included.",
        "more",
        "harness",
        "rate of the foreground",
    ),
    Metric(
        "competition.background_mbps",
        "Mbit/s",
        "What came in at the competing client while the measured one ran, all included.",
        None,
        "harness",
        "rate of the background",
    ),
    Metric(
        "duration_s",
        "s",
        "How long the trial took in all, from building its network to taking it down.",
        None,
        "harness",
        "duration of the trial",
    ),
    Metric(
        "overhead_s",
        "s",
        "The part of duration_s in which the client did not run.",
        None,
        "harness",
        "time that the harness took",
    ),
    Metric(
        "stalled_s",
        "s",
        "For how long endpoints waited for a processor during the completion time; none where the kernel does"
        " not tell.",
        "less",
        "harness",
        "time without a processor",
    ),
    Metric(
        "stolen_s",
        "s",
        "For how long a hypervisor kept a processor from running while the client ran: of all processors, the"
        " one that lost the most.",
        "less",
        "harness",
        "time that a hypervisor took",
    ),
    Metric(
        "watch_gap_s",
        "s",
        "The longest time, while the client ran, in which the harness was kept from looking whether endpoints"
        " waited for a processor; 0 when it never missed its turn.",
        "less",
        "harness",
        "longest time unwatched",
    ),
    Metric(
        "late_max_ms",
        "ms",
        "How late the latest packet left its link, of those beyond the link's bound; none where the backend"
        " does not know.",
        "less",
        "harness",
        "greatest lateness beyond the bound",
    ),
    Metric(
        "late_sum_ms",
        "ms",
        "For how long in all such packets were overdue, in the direction in which they were for longest; none"
        " where the backend does not know.",
        "less",
        "harness",
        "time with late packets",
    ),
    Metric(
        "lost_elsewhere",
        "packets",
        "Packets that the kernel lost outside of link and dropper while the client ran: in buffers of"
        " sockets, and at interfaces.",
        "less",
        "harness",
        "number of packets lost elsewhere",
    ),
    Metric(
        "content.losses",
        "packets",
        "Packets with data of the transfer, up to its end, that the dropper dropped; where an endpoint left"
        " the series `content`.",
        "less",
        "harness",
        "number of data packets lost",
    ),
    Metric(
        "content.losses_last_10",
        "packets",
        "Those of `content.losses` that were among the last ten packets with data.",
        "less",
        "harness",
        "number of data packets lost of the last ten",
    ),
    Metric(
        "trials_at_once",
        "trials",
        "The most trials that ran at a time during this one, itself included.",
        None,
        "harness",
        "number of trials at once",
    ),
)

# In names of the registry, this stands for a path: `path1` is that over the link of this name.
_PATH = "PATH"
_A_PATH = re.compile(r"path[1-9]\d*")

_OF_PATHS = tuple(
    Metric(f"{_PATH}.{name}", unit, meaning, None, "client and server", f"{words} of the path")
    for name, unit, meaning, words in (
        ("packets_sent", "packets", "Those of `packets_sent` over the path.", "number of packets sent"),
        (
            "packets_lost",
            "packets",
            "Those of `packets_lost` over the path.",
            "number of packets declared lost",
        ),
        ("bytes_sent", "bytes", "Those of `bytes_sent` over the path.", "number of bytes sent"),
        (
            "smoothed_rtt_ms",
            "ms",
            "QUIC's smoothed estimate at the end, of the path.",
            "smoothed round-trip time",
        ),
        ("source_sent", "packets", "Those of `source_sent` over the path.", "number of source packets sent"),
        ("repair_sent", "packets", "Those of `repair_sent` over the path.", "number of repair packets sent"),
        (
            "recovered",
            "packets",
            "Packets sent over the path that the peer rebuilt.",
            "number of packets rebuilt",
        ),
    )
)

# In names of the registry, this stands for a link and a direction: `internet.up`.
_PLACE = "LINK.DIRECTION"

_OF_LINKS = (
    Metric(
        f"{_PLACE}.packets",
        "packets",
        "Packets on which the dropper decided: those of the transfer that left the link in this direction.",
        None,
        "link",
        "number of packets",
    ),
    Metric(
        f"{_PLACE}.lost",
        "packets",
        "Packets that the dropper dropped: the losses that were injected.",
        None,
        "link",
        "number of packets lost",
    ),
    Metric(
        f"{_PLACE}.first_lost",
        "",
        "The first packet that the dropper dropped, counted from 0; none where it dropped none of the first"
        " 8,192.",
        None,
        "link",
        "first packet lost",
    ),
    Metric(
        f"{_PLACE}.queue_dropped",
        "packets",
        "Frames that the link's queue dropped: it was full, or they had waited too long for CoDel.",
        None,
        "link",
        "number of packets dropped by the queue",
    ),
    Metric(
        f"{_PLACE}.outage_dropped",
        "packets",
        "Frames that came while the link was out; none of trials from before links could be out.",
        None,
        "link",
        "number of packets dropped while the link was out",
    ),
    Metric(
        f"{_PLACE}.late",
        "packets",
        "Frames that left the emulated link later than its bound allows; none where the backend does not"
        " know.",
        "less",
        "link",
        "number of late packets",
    ),
    Metric(
        f"{_PLACE}.lateness_max_us",
        "µs",
        "How late the latest frame left the emulated link; none where the backend does not know.",
        "less",
        "link",
        "greatest lateness",
    ),
)

ALL = (
    *(*_OF_TRANSFERS, *_OF_PAGES, *_OF_SENDING_MESSAGES, *_OF_RQUIC, *_OF_NOQ_FEC, *_OF_PATHS),
    *(*_OF_MESSAGES, *_OF_VIDEO, *_OF_HARNESS, *_OF_LINKS),
)
"""Every registered metric, each once: those of endpoints without the endpoint."""

_BY_NAME = {metric.name: metric for metric in ALL}
_AT_PLAYOUT = re.compile(r"(messages\.on_time_ratio_)([0-9.e+]+)(ms)")
_OF_SIZE = re.compile(r"video\.share_(\d+x\d+)")


def of(name: str) -> Metric:
    """The metric of a column of a frame (`client.dct_s`, `internet.up.lost`, `stalled_s`), under that name.

    One that is not registered has the unit that its name ends with, and neither a meaning nor a direction.
    """
    source, _, own = name.partition(".")
    entry = _BY_NAME.get(_without_number(own) if source in ENDPOINTS else name)
    if entry is None and source not in SOURCES and name.count(".") == 2:
        entry = _BY_NAME.get(f"{_PLACE}.{name.rpartition('.')[2]}")
    if at := _AT_PLAYOUT.fullmatch(name):
        entry = _at_playout(_BY_NAME[f"{at[1]}{_PLAYOUT}{at[3]}"], at[2])
    if size := _OF_SIZE.fullmatch(name):
        share = _BY_NAME[f"video.share_{_RESOLUTION}"]
        entry = replace(share, words=share.words.replace(_RESOLUTION, size[1]))
    return replace(entry, name=name) if entry else Metric(name, unit_of(name), "", None, None)


def playout(name: str) -> float | None:
    """The playout delay in ms of a share of messages on time; None for any other metric."""
    at = _AT_PLAYOUT.fullmatch(name)
    return float(at[2]) if at else None


def _at_playout(entry: Metric, playout_ms: str) -> Metric:
    """The metric at this playout delay."""
    words, asked = (text.replace(_PLAYOUT, playout_ms) for text in (entry.words, entry.asked))
    return replace(entry, words=words, asked=asked)


def _without_number(name: str) -> str:
    """The name in the registry of a metric of an endpoint: of `path2.bytes_sent`, that of any path."""
    first, dot, rest = name.partition(".")
    return f"{_PATH}.{rest}" if dot and _A_PATH.fullmatch(first) else name


def title(name: str) -> str:
    """For an axis, with its unit: "download completion time (s)"."""
    return of(name).title


def compared(workload: Workload) -> str:
    """The metric by which variants are compared on this workload."""
    return workload.get("metric", DEFAULT)


def of_workloads(campaign: CampaignInfo) -> dict[str, str]:
    """The metric by which variants are compared, by the label of the workload."""
    return {workload["label"]: compared(workload) for workload in campaign.workloads}


def choose(campaign: CampaignInfo, metric: str) -> CampaignInfo:
    """The campaign with this metric compared on all its workloads; as it is for no metric."""
    if not metric:
        return campaign
    return replace(campaign, workloads=[{**workload, "metric": metric} for workload in campaign.workloads])


def by_metric(campaign: CampaignInfo) -> dict[str, CampaignInfo]:
    """For each metric that is compared, in the order of the design, the campaign with those workloads alone
    that compare it."""
    return {
        name: replace(campaign, workloads=[of for of in campaign.workloads if of["label"] in labels])
        for name, labels in labels_of_metrics(of_workloads(campaign)).items()
    }


def labels_of_metrics(metric_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Of the metric by the label of the workload (`of_workloads`): the labels by metric."""
    labels: dict[str, list[str]] = {}
    for label, name in metric_of.items():
        labels.setdefault(name, []).append(label)
    return labels


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its unit as people write it, and what it means."""

    name: str
    unit: str
    meaning: str


COLUMNS = (
    Column("id", "", "The trial's number in its database."),
    Column("variant", "", "The label of its variant."),
    Column("workload", "", "The label of its workload."),
    Column("point", "", "The index of its point in the design, from 0."),
    Column("repetition", "", "The index of its repetition, from 0."),
    Column("state", "", "ok, failed, timeout, unsupported or invalid."),
    Column("attempt", "", "Counts from 1: above 1 when runs of this trial came before that it replaced."),
    Column("started_at", "", "When it began: UTC, ISO 8601."),
    Column("host", "", "The name of the machine on which it ran."),
    Column("engine", "", "How it was run: virtual or emulated."),
    Column("reason", "", "Why it is not ok, in a sentence; empty when it is."),
    Column("seed.content", "", "The seed of what was transferred: unsigned, 64 bits."),
    Column(f"seed.{_PLACE}", "", "The seed of the losses of a direction of a link: unsigned, 64 bits."),
)
"""What a frame of trials has besides metrics, factors and parameters of workloads."""


@dataclass(frozen=True)
class Series:
    """A table that an endpoint leaves of a trial when its variant asks for it."""

    name: str
    meaning: str
    columns: tuple[Column, ...]


_TIME = Column("t_s", "s", "Time since the endpoint's first connection began.")
_CONNECTION = Column("connection", "", "The index of the connection, from 0.")
_SMOOTHED_RTT = Column(
    "smoothed_rtt_ms", "ms", "QUIC's estimate of the round-trip time; 0 before one was measured."
)

SERIES = (
    Series(
        "cwnd",
        "The congestion window and what fills it, a row for each change.",
        (
            _TIME,
            _CONNECTION,
            Column("congestion_window_bytes", "bytes", "The congestion window."),
            Column("bytes_in_flight", "bytes", "Bytes sent that are neither acknowledged nor declared lost."),
            _SMOOTHED_RTT,
        ),
    ),
    Series(
        "fec",
        "Repair packets sent and received, and packets rebuilt, a row for each change.",
        (
            _TIME,
            _CONNECTION,
            Column("repair_sent", "packets", "Repair packets sent up to then."),
            Column("repair_received", "packets", "Repair packets received up to then."),
            Column(
                "packets_rebuilt",
                "packets",
                "Packets rebuilt up to then, those that came after all included.",
            ),
        ),
    ),
    Series(
        "content",
        "Each datagram with data of a transfer that its sender sent, up to the one with the end: those of at"
        " least half a packet since the content began, and that one.",
        (
            _TIME,
            _CONNECTION,
            Column("datagram", "", "Its number, from 0, among all that the endpoint sent."),
            Column("bytes", "bytes", "Its UDP payload."),
        ),
    ),
    Series(
        "code_rate",
        "rQUIC's code rate, a row when a connection opens and one at the end of each period of the rate.",
        (
            _TIME,
            _CONNECTION,
            Column("q", "packets", "Source packets for each coded packet: Q of the paper."),
            Column(
                "residual_loss",
                "",
                "Packets lost to packets delivered, the mean over periods; 0 before one was measured.",
            ),
            Column("delivered", "packets", "Packets acknowledged in the period."),
            Column("lost", "packets", "Packets declared lost in the period."),
            Column("window_packets", "packets", "The congestion window."),
            _SMOOTHED_RTT,
        ),
    ),
    Series(
        "messages",
        "Each message of the workload messages, kept by the end that receives them: what became of it. Times"
        " are since the sender began, -1 where there is none.",
        (
            Column("t_s", "s", "When the message was due."),
            _CONNECTION,
            Column("message", "", "Its number, from 0."),
            Column("size_bytes", "bytes", "Its bytes."),
            Column("parts", "", "In how many parts it was sent."),
            Column("parts_arrived", "", "How many of them arrived."),
            Column("sent_s", "s", "When its last part was handed over."),
            Column("first_s", "s", "When its first part arrived, whichever that was."),
            Column("whole_s", "s", "When it was whole."),
        ),
    ),
)
"""Every series that is known. An endpoint may leave others: names of columns end with their units."""


def column_of(series: str, name: str) -> Column:
    """A column of a series; with the unit that its name ends with where it is not registered."""
    known = {(table.name, column.name): column for table in SERIES for column in table.columns}
    return known.get((series, name), Column(name, unit_of(name), ""))
