"""Figures 5.6 to 5.31 of Michel's thesis, from campaigns of `thesis2018-*`, and its claims.

F. Michel: "Improving QUIC. Bringing Forward Erasure Correction and unreliable transfer to a reliable
protocol", UCLouvain, 2018, chapter 5.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fecbench.results.papers.claim import PaperFigure
from fecbench.results.papers.thesis2018 import claims, figures, multipath
from fecbench.results.papers.thesis2018.claims import Claims
from fecbench.results.papers.thesis2018.figures import Draw
from fecbench.results.store.records import CampaignInfo

__all__ = ["FIGURES"]

_ECDF = (
    "ECDF over the points of the design, of the median over repetitions. With FEC and with UDP, messages are"
    " sent in datagrams; with reliable QUIC, in one stream."
)


def _differences(_: pd.DataFrame, __: CampaignInfo) -> list[str]:
    return [
        "Messages without retransmission travel in DATAGRAM frames (RFC 9221): an unreliable stream in the"
        " thesis' message mode delivers a frame whole or not at all, too.",
        "The thesis names no bandwidth; ours is 20 Mbit/s, and our windows of flow control do not bind: its"
        " re-bufferings at the beginning of connections with long delays are not to be seen here.",
        "Only packets of messages are in blocks, so that one of 20 begins with the first or the fifth packet"
        " of a message of 8, and spans three messages at most; in the thesis four.",
        "The reader's clock does not wait for a message that is late: each is asked for on its own.",
    ]


def _differences_of_paths(_: pd.DataFrame, __: CampaignInfo) -> list[str]:
    return [
        *_differences(_, __),
        "Our paths are those of QUIC's multipath draft 21, over noq; the thesis' are those of mp-quic.",
        "The thesis does not say whether senders obeyed OLIA, whose windows HIGHRB reads. Ours have neither"
        " window nor pacing, as in all its other experiments, and OLIA's window is computed for HIGHRB alone:"
        " a sender that obeys one is split by its windows, whatever the scheduler.",
        "The second path opens some four round-trip times after the first: what is due before takes path 1.",
    ]


def _of_paths(number: str, draw: Draw, judge: Claims, caption: str = "") -> PaperFigure:
    of_arms = "ECDF over the points of the design, of the median over repetitions; all with RS (30, 20)."
    return replace(
        _figure(number, draw, judge, caption or of_arms),
        differences=_differences_of_paths,
    )


def _figure(number: str, draw: Draw, judge: Claims, caption: str = _ECDF) -> PaperFigure:
    return PaperFigure(
        name=f"thesis2018-fig{number.replace('.', '-')}",
        number=f"Michel's thesis, Fig. {number}",
        caption=caption,
        draw=draw,
        claims=judge,
        differences=_differences,
    )


# The figures by the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "thesis2018-ge": [
        _figure("5.6", figures.fig5_6, claims.claims_of_fig5_6),
        _figure("5.7", figures.fig5_7, claims.none_of),
        _figure("5.8", figures.fig5_8, claims.claims_of_fig5_8),
        _figure("5.9", figures.fig5_9, claims.claims_of_fig5_9),
        _figure("5.13", figures.received_by_codes, claims.claims_of_received_by_codes),
        _figure("5.14", figures.rebuffering_by_codes, claims.claims_of_bursty_rebuffering),
        _figure("5.15", figures.fig5_15, claims.claims_of_fig5_15),
        _figure("5.18", figures.fig5_18, claims.claims_of_fig5_18),
        _figure("5.19", figures.rebuffering_low, claims.claims_of_bursty_low),
    ],
    "thesis2018-delay": [
        _figure(
            "5.10",
            figures.over_the_delay,
            claims.claims_of_fig5_10,
            "Re-buffering time over the one-way delay, the median over repetitions; the losses are those of"
            " Table 5.2.",
        )
    ],
    "thesis2018-uniform": [
        _figure("5.11", figures.received_by_codes, claims.claims_of_received_by_codes),
        _figure("5.12", figures.rebuffering_by_codes, claims.claims_of_uniform_rebuffering),
        _figure("5.16", figures.received_low, claims.none_of),
        _figure("5.17", figures.rebuffering_low, claims.claims_of_uniform_low),
    ],
    "thesis2018-low-desync": [
        _figure("5.16", figures.received_low, claims.none_of),
        _figure("5.17", figures.rebuffering_low, claims.claims_of_uniform_low),
    ],
    "thesis2018-multipath-homogeneous": [
        _of_paths("5.24", multipath.fig5_24, claims.none_of),
        _of_paths("5.25", multipath.fig5_25, multipath.claims_of_fig5_25),
        _of_paths("5.26", multipath.fig5_26, multipath.claims_of_fig5_26),
        _of_paths("5.28", multipath.received_by_schedulers, multipath.claims_of_fig5_28),
        _of_paths(
            "5.29",
            multipath.over_the_delay,
            multipath.claims_of_fig5_29,
            "A mark a point, where the medians over repetitions differ; all with RS (30, 20).",
        ),
    ],
    "thesis2018-multipath-losses": [
        _of_paths("5.27", multipath.fig5_27, multipath.claims_of_fig5_27),
        _of_paths("5.30", multipath.received_by_schedulers, multipath.claims_of_fig5_30),
    ],
    "thesis2018-multipath-heterogeneous": [
        _of_paths("5.31", multipath.received_by_schedulers, multipath.claims_of_fig5_31),
    ],
}
