"""`fecbench aa` compares what should be equal: a variant with itself, or a design with itself with another
number of trials at a time. It is the yardstick for how many repetitions a difference needs."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import designs
from designs import Design, Variant
from fecbench.hints import nearest
from results.store.database import CampaignInfo, Database
from runners.campaign import campaign
from runners.commands.progress import Reporter
from runners.commands.show import campaigns_of
from runners.engines import scratch
from runners.engines.admission import Jobs, parse_jobs
from runners.refusal import Refusal
from runners.trial import isolation
from topologies.topology import Backend

if TYPE_CHECKING:
    from results.analysis.equality import Equality

ARMS = ("A", "B")


@dataclass(frozen=True)
class _Options:
    """How to run every campaign that is compared."""

    link: Backend
    resume: bool
    calibrate: bool

    def request(self, path: Path, name: str, jobs: Jobs) -> campaign.Request:
        return campaign.request(
            path,
            name=name,
            backend=self.link,
            jobs=jobs,
            resume=self.resume,
            filters=[],
            calibrate=self.calibrate,
        )


def aa(
    db: Annotated[str, typer.Option(help="The results database: a file, or a PostgreSQL URL.")],
    design: Annotated[Path | None, typer.Argument(help="The design, a TOML file.")] = None,
    variant: Annotated[str, typer.Option(help="The label of the variant to run against itself.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Run what the campaign still lacks.")] = False,
    jobs: Annotated[str, typer.Option(metavar="N|auto", help="Trials at a time.")] = "1",
    against_jobs: Annotated[
        str,
        typer.Option(metavar="N|auto", help="Run the design with so many at a time first, then with --jobs."),
    ] = "",
    link: Annotated[Backend, typer.Option(help="The link backend.")] = "auto",
    no_calibrate: Annotated[
        bool, typer.Option("--no-calibrate", help="Begin even if the emulated link is not what it should be.")
    ] = False,
    between: Annotated[str, typer.Option(help="Compare this campaign, without running anything …")] = "",
    and_: Annotated[str, typer.Option("--and", help="… with this one of the same design.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> int:
    """Compare a variant with itself, or two campaigns of one design; 1 when they differ."""
    # Imported here: SciPy takes longer to load than most commands take to run.
    from results.analysis import equality

    options = _Options(link, resume, calibrate=not no_calibrate)
    try:
        match (design, variant, against_jobs, between, and_):
            case (None, "", "", first, second) if first and second:
                with Database.open(db) as database:
                    compared, found = _between(database, first, second)
            case (Path(), label, "", "", "") if label:
                request = _against_itself(design, label, parse_jobs("--jobs", jobs), options)
                with _ready(db) as database:
                    done = _run(request, database)
                    compared, found = f"campaign {done.name}", equality.of_itself(database, done)
            case (Path(), "", other, "", "") if other:
                numbers = parse_jobs("--against-jobs", other), parse_jobs("--jobs", jobs)
                if numbers[0] == numbers[1]:
                    raise Refusal(f"--against-jobs {other}: must be another number than --jobs has")
                requests = [_with_jobs(design, number, options) for number in numbers]
                with _ready(db) as database:
                    names = [_run(request, database).name for request in requests]
                    compared, found = _between(database, names[0], names[1])
            case _:
                raise Refusal(
                    "fecbench aa needs DESIGN with --variant or --against-jobs, or --between and --and"
                )
    except equality.NothingToCompare as error:
        raise Refusal(f"{db}: nothing to compare: {error}") from None
    _print(compared, found, as_json)
    return 1 if found.differ else 0


def _print(compared: str, found: "Equality", as_json: bool) -> None:
    from results.analysis import equality

    if as_json:
        print(json.dumps({"compared": compared, **asdict(found), "differ": found.differ}, indent=1))
    else:
        print("\n".join([compared, *equality.sentences(found)]))


def _ready(db: str) -> Database:
    """The database, where trials can be run."""
    isolation.require("fecbench aa")
    return Database.open(db, create=True)


def _between(database: Database, first: str, second: str) -> tuple[str, "Equality"]:
    """Which campaigns are compared, in words, and what was found."""
    from results.analysis import equality

    one, other = (campaigns_of(database, name)[0] for name in (first, second))
    if one.design_text != other.design_text:
        raise Refusal(f"{database.address}: campaigns {first!r} and {second!r} ran different designs")
    return f"{second} against {first}", equality.between(database, one, other)


def _against_itself(path: Path, label: str, jobs: Jobs, options: _Options) -> campaign.Request:
    """The A/A campaign of a variant, checked whole before a database is opened."""
    from results.analysis.equality import AA_PREFIX

    design = designs.load(path)
    name = f"{AA_PREFIX}{design.name}-{re.sub('[^A-Za-z0-9]+', '-', label).strip('-')}"
    with scratch.folder() as folder:
        against_itself = folder / "aa.toml"
        against_itself.write_text(against_itself_text(design, label))
        (folder / "pages").symlink_to(path.absolute().parent / "pages")  # stand beside the design
        _check_same(design, designs.load(against_itself))
        return options.request(against_itself, name, jobs)


def _with_jobs(path: Path, jobs: Jobs, options: _Options) -> campaign.Request:
    """The campaign of a design with so many trials at a time."""
    return options.request(path, f"{designs.load(path).name}-jobs-{jobs}", jobs)


def _run(request: campaign.Request, database: Database) -> CampaignInfo:
    """The campaign, complete."""
    reporter = Reporter()
    try:
        return campaign.run(request, database, reporter)
    finally:
        reporter.close()


def against_itself_text(design: Design, label: str) -> str:
    """The design file with one variant twice, under two labels, instead of its variants."""
    labels = [variant.label for variant in design.variants]
    if label not in labels:
        raise Refusal(f"{design.path}: --variant {label}: has no such variant; {nearest(label, labels)}")
    if any("background" in workload.parameters for workload in design.workloads):
        raise Refusal(
            f"{design.path}: its transfers compete with other variants of the design, so none can be run "
            "against itself; use --against-jobs"
        )
    chosen = design.variants[labels.index(label)]
    return "\n".join([*_lines_without_variants(design.text), *(_variant_text(chosen, arm) for arm in ARMS)])


def _lines_without_variants(text: str) -> list[str]:
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = re.match(r"\[+\s*variants\b", line) is not None
        if not inside:
            kept.append(line)
    return kept


def _variant_text(variant: Variant, arm: str) -> str:
    # JSON's strings, numbers and truth values are TOML's, too.
    options = ", ".join(
        f"{json.dumps(name)} = {json.dumps(value)}" for name, value in variant.options.items()
    )
    return (
        f"[[variants]]\nlabel = {json.dumps(f'{variant.label} ({arm})', ensure_ascii=False)}\n"
        f"implementation = {json.dumps(variant.implementation)}\noptions = {{ {options} }}\n"
        f"baseline = {json.dumps(arm == ARMS[0])}\n"
    )


def _check_same(design: Design, made: Design) -> None:
    """Raises Refusal when anything but the variants differs."""
    others = [name for name in Design.model_fields if name != "variants"]
    if any(getattr(design, name) != getattr(made, name) for name in others):
        raise Refusal(f"{design.path}: fecbench aa needs variants that are written as [[variants]] tables")
