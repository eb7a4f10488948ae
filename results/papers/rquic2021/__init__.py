"""The figures of rQUIC's evaluation, from campaigns of the designs `rquic2021-*`, and its claims.

M. Zverev, P. Garrido, F. Fernández, J. Bilbao, Ö. Alay, S. Ferlin, A. Brunstrom, R. Agüero: "Robust QUIC:
Integrating Practical Coding in a Low Latency Transport Protocol", IEEE Access 2021, §VI.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from fecbench.results.papers.claim import Claim, PaperFigure
from fecbench.results.papers.rquic2021 import boxes, claims, dash, figures
from fecbench.results.papers.rquic2021.differences import differences, differences_of_rates
from fecbench.results.papers.rquic2021.rates import completion_rates, overheads

__all__ = [
    "FIGURES",
    "completion_rates",
    "fig5_bulk",
    "fig6_bulk_rates",
    "fig7_page",
    "fig9_page_rates",
    "fig12_page_timeouts",
    "fig13_bulk_timeouts",
    "overheads",
]

_BOXES = (
    "Download completion time and overhead Ô = coded packets / (protected + coded packets), equation (5), by"
    " loss rate. Boxes are of the trials that were ok; where some failed or timed out, how many did stands"
    " above the panel. The line is the median, the box holds the middle half, the whiskers reach the last"
    " trial within 1.5 times the height of the box; bars are means with 95 % confidence intervals."
)
_RATES = (
    "Completion rate ξ, equation (4): the mean download completion time with rQUIC divided by that of QUIC"
    " for the same losses, with 95 % bootstrap intervals where there are enough repetitions. Below 1, rQUIC"
    " is faster."
)
_TIMEOUTS = (
    f"{_RATES} Over the time that the receiver holds packets behind a gap. The thick line is the least"
    " squares regression of the third order over the logarithm of the timeout, where there are points enough."
)


def _figure(
    number: int,
    draw: Callable[..., Figure],
    claims: Callable[..., list[Claim]],
    workload: str,
    caption: str,
    differences: Callable[..., list[str]] = differences,
) -> PaperFigure:
    return PaperFigure(
        name=f"rquic2021-fig{number}",
        number=f"rQUIC 2021, Fig. {number}",
        caption=caption,
        draw=draw,
        claims=partial(claims, workload=workload),
        differences=partial(differences, workload=workload),
    )


fig5_bulk = partial(figures.boxes, workload="download")
fig6_bulk_rates = partial(figures.rates_by_loss, workload="download")
fig7_page = partial(figures.boxes, workload="page")
fig9_page_rates = partial(figures.rates_by_loss, workload="page")
fig12_page_timeouts = partial(figures.rates_by_timeout, workload="page")
fig13_bulk_timeouts = partial(figures.rates_by_timeout, workload="download")

# The figures by the name of the design: `results.papers`.
FIGURES: dict[str, list[PaperFigure]] = {
    "rquic2021-bulk": [
        _figure(5, fig5_bulk, boxes.claims_of_boxes, "download", _BOXES),
        _figure(6, fig6_bulk_rates, claims.claims_of_rates, "download", _RATES, differences_of_rates),
    ],
    "rquic2021-page": [
        _figure(7, fig7_page, boxes.claims_of_boxes, "page", _BOXES),
        _figure(9, fig9_page_rates, claims.claims_of_rates, "page", _RATES, differences_of_rates),
    ],
    "rquic2021-bto": [
        _figure(12, fig12_page_timeouts, claims.claims_of_timeouts, "page", _TIMEOUTS),
        _figure(13, fig13_bulk_timeouts, claims.claims_of_timeouts, "download", _TIMEOUTS),
    ],
    "rquic2021-video": [
        PaperFigure(
            name="rquic2021-fig10",
            number="rQUIC 2021, Fig. 10",
            caption="Quality of experience of a session of 120 s: means with 95 % intervals. It is the metric"
            " `video.qoe_log`, by the logarithm of the bit rate over that of the lowest level, less changes,"
            " less 2.66 for each second without a picture a segment. The paper shows scores of ITU-T P.1203.",
            draw=dash.fig10_scores,
            claims=dash.claims_of_scores,
            differences=dash.differences,
        ),
        PaperFigure(
            name="rquic2021-fig11",
            number="rQUIC 2021, Fig. 11",
            caption="Which share of the segments had which size of the picture. The paper shows Wi-Fi and"
            " cellular.",
            draw=dash.fig11_resolutions,
            claims=dash.claims_of_resolutions,
            differences=lambda *_: [],
        ),
    ],
}
