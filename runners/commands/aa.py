"""`fecbench aa` compares what should be equal: a variant with itself, or a design with itself with another
number of trials at a time. It is the yardstick for how many repetitions a difference needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fecbench.results.store.records import CampaignInfo
from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import (
    comparing,
    design_of,
    implementations_in,
    one_campaign,
    open_database,
)
from fecbench.runners.commands.console.terminal import note, say
from fecbench.runners.refusal import Refusal
from fecbench.topologies.backend import Backend

if TYPE_CHECKING:
    from fecbench.designs import Design
    from fecbench.results.analysis.equality import Equality
    from fecbench.results.store.database import Database
    from fecbench.runners.campaign.request import Request
    from fecbench.runners.engines.admission import Jobs

AA_PREFIX = "aa-"
"""The names of campaigns that run a variant against itself begin with it."""
FORMER = "former"
HOSTS = "--between-hosts"
"""The subcommand `hosts`, as an option."""
FLAGS = ("--resume", "--no-calibrate", "--json", "-v", "--verbose")
"""Options that may also stand before the subcommand."""


class _WithFormerForm(TyperGroup):
    """A group that accepts arguments without a subcommand, the former form of `aa`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        flags = list(takewhile(lambda argument: argument in FLAGS, args))
        rest = args[len(flags) :]
        if HOSTS in args:
            args = ["hosts", *(argument for argument in args if argument != HOSTS)]
        elif rest and rest[0] in self.commands:
            args = [rest[0], *flags, *rest[1:]]
        elif args and not {"-h", "--help"} & set(args):
            args = [FORMER, *args]
        return super().parse_args(ctx, args)


aa = typer.Typer(
    add_completion=False,
    cls=_WithFormerForm,
    no_args_is_help=True,
    help="Compare what should be equal; the exit status is 1 when a difference is found.",
)

Variant = Annotated[
    str,
    typer.Option(help="The label of the variant to run against itself.", autocompletion=completion.variants),
]
AgainstJobs = Annotated[
    str, typer.Option(metavar="N|auto", help="Run the design with so many at a time first, then with --jobs.")
]


@dataclass(frozen=True, kw_only=True)
class Manner:
    """The manner in which all compared campaigns are run."""

    jobs: str
    link: Backend
    resume: bool
    calibrate: bool
    folders: Sequence[Path] | None
    """Folders of implementations, besides ours."""

    def request(self, design: Design, name: str, jobs: Jobs, *, resume: bool) -> Request:
        from fecbench.runners.campaign.request import request
        from fecbench.runners.sandbox import isolation

        campaign_request = request(
            design,
            implementations_in(self.folders),
            name=name,
            backend=self.link,
            jobs=jobs,
            resume=resume,
            calibrate=self.calibrate,
            stop_when_alike=True,
        )
        isolation.require("fecbench aa")
        return campaign_request


@aa.command()
def itself(
    design: arguments.DesignFile,
    variant: Variant,
    db: arguments.Database = arguments.DATABASE,
    metric: arguments.Metric = "",
    resume: arguments.Resume = False,
    jobs: arguments.Jobs = "1",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Run a variant of a design against itself: the campaign aa-DESIGN-VARIANT."""
    manner = Manner(jobs=jobs, link=link, resume=resume, calibrate=not no_calibrate, folders=implementations)
    return _answer(*compare_with_itself(db, design_of(design), variant, manner, metric), as_json)


@aa.command("jobs")
def with_other_jobs(
    design: arguments.DesignFile,
    against_jobs: AgainstJobs,
    db: arguments.Database = arguments.DATABASE,
    metric: arguments.Metric = "",
    resume: arguments.Resume = False,
    jobs: arguments.Jobs = "1",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Run a design with two numbers of trials at a time: do trials disturb each other?"""
    manner = Manner(jobs=jobs, link=link, resume=resume, calibrate=not no_calibrate, folders=implementations)
    return _answer(*compare_jobs(db, design_of(design), against_jobs, manner, metric), as_json)


@aa.command()
def between(
    first: Annotated[str, typer.Argument(help="The campaign that is compared with.")],
    second: Annotated[str, typer.Argument(help="The campaign that is compared, of the same design.")],
    db: arguments.Database = arguments.DATABASE,
    metric: arguments.Metric = "",
    as_json: arguments.Json = False,
) -> int:
    """Compare two campaigns of one design, trial by trial, without running anything."""
    return _answer(*compare_campaigns(db, first, second, metric), as_json)


@aa.command()
def hosts(
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    metric: arguments.Metric = "",
    as_json: arguments.Json = False,
) -> int:
    """Compare the hosts that have run a campaign (--between-hosts): does it matter which one ran a trial?"""
    with open_database(db) as database:
        from fecbench.results.analysis import hosts as of_hosts

        info = one_campaign(database, campaign)
        differences = of_hosts.differences(database, comparing(database, info, metric), metric)
        if not differences:
            raise Refusal(
                f"{database.address}: nothing to compare: campaign {info.name!r} has no two hosts with"
                f" {of_hosts.LEAST_GROUPS} groups each at the same points and workloads"
            )
    compared = f"hosts of campaign {info.name}"
    differ = any(difference.differ for difference in differences)
    if as_json:
        pairs = [{**asdict(difference), "differ": difference.differ} for difference in differences]
        print_document({"compared": compared, "pairs": pairs, "differ": differ})
    else:
        say("\n".join([compared, *map(of_hosts.sentence, differences)]))
    return 1 if differ else 0


@aa.command(FORMER, hidden=True)
def former(
    db: arguments.Database = arguments.DATABASE,
    metric: arguments.Metric = "",
    design: Annotated[
        Path | None, typer.Argument(metavar="DESIGN", autocompletion=completion.designs)
    ] = None,
    variant: Variant = "",
    resume: arguments.Resume = False,
    jobs: arguments.Jobs = "1",
    against_jobs: AgainstJobs = "",
    link: arguments.Link = "auto",
    no_calibrate: arguments.NoCalibrate = False,
    implementations: arguments.ImplementationFolders = None,
    first: Annotated[str, typer.Option("--between")] = "",
    second: Annotated[str, typer.Option("--and")] = "",
    as_json: arguments.Json = False,
) -> int:
    """The form without subcommands."""
    manner = Manner(jobs=jobs, link=link, resume=resume, calibrate=not no_calibrate, folders=implementations)
    campaigns = (first, second)
    if design and variant and not (against_jobs or any(campaigns)):
        return _answer(*compare_with_itself(db, design_of(design), variant, manner, metric), as_json)
    if design and against_jobs and not (variant or any(campaigns)):
        return _answer(*compare_jobs(db, design_of(design), against_jobs, manner, metric), as_json)
    if all(campaigns) and not (design or variant or against_jobs):
        return _answer(*compare_campaigns(db, first, second, metric), as_json)
    raise Refusal("fecbench aa needs DESIGN with --variant or --against-jobs, or --between and --and")


def compare_with_itself(
    db: str, design: Design, label: str, manner: Manner, metric: str = ""
) -> tuple[str, Equality]:
    """Run a variant against itself: what was compared, in words, and how equal it is."""
    from fecbench.results.analysis import equality
    from fecbench.runners.campaign.against_itself import against_itself
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs

    _note_a_metric_that_is_not_known(metric)
    twice = against_itself(design, label)
    name = f"{AA_PREFIX}{design.name}-{re.sub('[^A-Za-z0-9]+', '-', label).strip('-')}"
    campaign_request = manner.request(twice, name, parse_jobs("--jobs", manner.jobs), resume=manner.resume)
    with open_database(db, create=not manner.resume) as database:
        info = run_here(campaign_request, database)
        return f"campaign {info.name}", _compared(equality.of_itself, database, metric, info)


def compare_jobs(
    db: str, design: Design, against_jobs: str, manner: Manner, metric: str = ""
) -> tuple[str, Equality]:
    """Run a design with two numbers of trials at a time, and compare the second campaign with the first."""
    from fecbench.results.analysis import equality
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs

    numbers = parse_jobs("--against-jobs", against_jobs), parse_jobs("--jobs", manner.jobs)
    if numbers[0] == numbers[1]:
        raise Refusal(f"--against-jobs {against_jobs}: must be another number than --jobs has")
    _note_a_metric_that_is_not_known(metric)
    # A run that was interrupted during the first campaign has not begun the second.
    requests = [
        manner.request(design, f"{design.name}-jobs-{number}", number, resume=manner.resume and index == 0)
        for index, number in enumerate(numbers)
    ]
    with open_database(db, create=not manner.resume) as database:
        first, second = (run_here(campaign_request, database) for campaign_request in requests)
        return f"{second.name} against {first.name}", _compared(
            equality.between, database, metric, first, second
        )


def compare_campaigns(db: str, first: str, second: str, metric: str = "") -> tuple[str, Equality]:
    """Compare a second campaign with a first one of the same design."""
    from fecbench.results.analysis import equality

    with open_database(db) as database:
        one, other = one_campaign(database, first), one_campaign(database, second)
        if one.design_text != other.design_text:
            raise Refusal(f"{database.address}: campaigns {first!r} and {second!r} ran different designs")
        return f"{second} against {first}", _compared(equality.between, database, metric, one, other)


def _note_a_metric_that_is_not_known(metric: str) -> None:
    """Note that a metric is unknown. It may be an implementation's own: only trials show that, after hours
    perhaps."""
    from fecbench.results import metrics

    if metric and not metrics.of(metric).meaning:
        note(f"--metric {metric}: compared if trials measure it; fecbench list metrics has no such metric")


def _compared(
    compare: Callable[..., Equality], database: Database, metric: str, *campaigns: CampaignInfo
) -> Equality:
    from fecbench.results.analysis.equality import NothingToCompare

    try:
        return compare(database, *(comparing(database, campaign, metric) for campaign in campaigns))
    except NothingToCompare as error:
        raise Refusal(f"{database.address}: nothing to compare: {error}") from None


def _answer(compared: str, result: Equality, as_json: bool) -> int:
    from fecbench.results.analysis import equality

    if as_json:
        p_value = result.one_sided_p_value
        print_document(
            {"compared": compared, **asdict(result), "one_sided_p_value": p_value, "differ": result.differ}
        )
    else:
        say("\n".join([compared, *equality.sentences(result)]))
    return 1 if result.differ else 0
