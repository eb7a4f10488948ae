"""`fecbench crosscheck`: a sample of a campaign in virtual time, emulated, and how the two agree."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fecbench.documents import number
from fecbench.errors import BadInput
from fecbench.quantities import quantity
from fecbench.runners.campaign import crosscheck as samples
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import design_of, implementations_in, open_database
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.commands.console.terminal_tables import print_table, table_of
from fecbench.runners.refusal import Refusal

if TYPE_CHECKING:
    from fecbench.results.analysis.agreement import Agreement, Comparison
    from fecbench.results.analysis.criterion import Statistic, Stratum
    from fecbench.results.analysis.pooled import Pooled


def crosscheck(
    design: arguments.DesignFile,
    share: Annotated[
        str,
        typer.Option(
            metavar="0.02|2%",
            help="The share of the groups (a repetition of a workload at a point, with all its variants) that"
            f" is emulated; of each workload {samples.FEWEST_GROUPS} at least.",
        ),
    ] = str(samples.USUAL_SHARE),
    arms: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="Emulate only this variant, beside what it is compared with; repeatable.",
            autocompletion=completion.variants,
        ),
    ] = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: Annotated[
        str, typer.Option(help="The campaign in virtual time; by default that of the design's name.")
    ] = "",
    jobs: arguments.Jobs = "1",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Emulate a sample of a campaign in virtual time, and compare: 1 when the two differ.

    The same command goes on after an interruption, and with a greater share it adds to the sample.
    """
    loaded_design = design_of(design)
    from fecbench.results.analysis import agreement
    from fecbench.runners.campaign.request import request
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs
    from fecbench.runners.sandbox import isolation
    from fecbench.runners.tasks.task import VIRTUAL

    wanted_share = parse_share(share)
    all_implementations = implementations_in(implementations)
    virtual = request(loaded_design, all_implementations, name=campaign, backend=VIRTUAL, resume=True)
    emulation = samples.emulated(
        virtual,
        request(
            loaded_design,
            all_implementations,
            backend=link,
            jobs=parse_jobs("--jobs", jobs),
            calibrate=not no_calibrate,
            beside_virtual=True,
        ),
        wanted_share,
        arms or (),
    )
    with open_database(db) as database:
        checked = samples.checked_campaign(virtual, emulation, database)
        isolation.require("fecbench crosscheck")
        result = agreement.between(database, checked, run_here(emulation, database))
    if as_json:
        print_document(_document(result))
    else:
        _print(result)
    return 1 if result.verdict == "differs" else 0


def parse_share(text: str) -> float:
    """A share, as a number above 0 and up to 1, or as a percentage. Raises Refusal for anything else."""
    try:
        share = quantity(text, "share")
    except BadInput:
        share = math.nan
    if not 0 < share <= 1:
        raise Refusal(f"--share {text}: must be above 0 and at most 1, such as 0.02 or 2%")
    return share


def _print(result: Agreement) -> None:
    from fecbench.results.analysis import agreement, agreement_in_words

    rows = [
        (
            *(comparison.variant, comparison.workload, comparison.what, comparison.n),
            *(comparison.shown(comparison.quantiles[share]) for share in agreement.QUANTILES),
            _ends(comparison, comparison.interval),
            _answer(comparison, "mean"),
            _answer(comparison, "far"),
            _answer(comparison, "either"),
            _answer(comparison, "tail"),
            _ends(comparison, comparison.tolerance),
            comparison.verdict,
        )
        for comparison in result.comparisons
    ]
    numbers = ["n", *(f"{share:.0%}" for share in agreement.QUANTILES)]
    heads = ["variant", "workload", "virtual / emulated - 1 of", *numbers]
    heads += ["median's interval", "mean", "far off", "either way", "95 % tail", "tolerance", "verdict"]
    print_table(table_of(heads, rows, right=[*numbers, *heads[-6:-2]]))
    for sentence in agreement_in_words.sentences(result):
        say(sentence)


def _ends(comparison: Comparison, interval: tuple[float, float]) -> str:
    return " to ".join(map(comparison.shown, interval)) if not math.isnan(interval[0]) else "-"


def _answer(comparison: Comparison, statistic: Statistic) -> str:
    answer = comparison.of("all", statistic)
    return "-" if answer is None else comparison.shown_value(answer, answer.value)


def _document(result: Agreement) -> dict[str, Any]:
    """Return the JSON document. JSON has neither NaN nor infinity: both become null."""
    from fecbench.results.analysis import agreement_in_words

    document = asdict(result)
    return {
        "headline": agreement_in_words.headline(result),
        "verdict": result.verdict,
        **{name: document[name] for name in ("campaign", "sample", "share", "arms", "planned", "pairs")},
        "left_out": result.left_out,
        **{name: document[name] for name in ("other_losses", "other_states")},
        "strata": {
            "met a loss": {"pairs": result.met_a_loss},
            "met none": {"pairs": result.pairs - result.met_a_loss},
        },
        "more": result.more,
        "more_to_one_percent": result.more_to_one_percent,
        "pooled": [_pooled_document(entry) for entry in result.pooled],
        "arms": [_comparison_document(comparison) for comparison in result.comparisons],
    }


def _pooled_document(pooled: Pooled) -> dict[str, Any]:
    """A mean ratio to 1 %; the workload is null over all of them."""
    import numpy as np

    value, low, high = pooled.relative
    return {
        "variant": pooled.variant,
        "baseline": pooled.baseline,
        "workload": pooled.workload,
        "metric": pooled.metric,
        "n": pooled.criterion.n,
        "value": number(value),
        "interval": [number(low), number(high)],
        "tolerance": [float(np.expm1(end)) for end in pooled.criterion.tolerance],
        "verdict": pooled.verdict,
        "more": pooled.more,
    }


def _comparison_document(comparison: Comparison) -> dict[str, Any]:
    from fecbench.results.analysis.criterion import STRATA

    document = asdict(comparison)
    del document["criteria"]
    return {
        **document,
        "verdict": comparison.verdict,
        "quantiles": {f"{share:g}": number(value) for share, value in comparison.quantiles.items()},
        "interval": [number(end) for end in comparison.interval],
        "tolerance": [number(end) for end in comparison.tolerance],
        "more": comparison.more,
        "strata": {
            stratum: _stratum_document(comparison, stratum)
            for stratum in STRATA
            if comparison.of(stratum, "mean") is not None
        },
    }


def _stratum_document(comparison: Comparison, stratum: Stratum) -> dict[str, Any]:
    """Return the criteria of the trials of a stratum, by statistic."""
    answers = [answer for answer in comparison.criteria if answer.stratum == stratum]
    return {
        "n": answers[0].n,
        **{
            answer.statistic: {
                "value": number(comparison.relative(answer, answer.value)),
                "interval": [number(comparison.relative(answer, end)) for end in answer.interval],
                "tolerance": [number(comparison.relative(answer, end)) for end in answer.tolerance],
                "verdict": answer.verdict,
            }
            for answer in answers
        },
    }
