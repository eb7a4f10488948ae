"""`fecbench try`: a question in ranges, answered in virtual time, without a file."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from fecbench.results.store.records import CampaignInfo
from fecbench.runners.commands.console import arguments, sketching
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.choice import implementations_in, open_database
from fecbench.runners.commands.console.terminal import say, say_next
from fecbench.runners.commands.console.terminal_tables import print_table

if TYPE_CHECKING:
    import pandas as pd

    from fecbench.results.store.database import Database

_UNNAMED = "try"


def trying(
    bandwidth: sketching.Bandwidth = "5..50Mbit/s",
    rtt: sketching.RoundTrip = "20..200ms",
    loss: sketching.Loss = "0.5..5%",
    burst: sketching.Burst = "1",
    queue_bdp: sketching.Queue = "1.5",
    size: sketching.Sizes = "50kB",
    upload: sketching.Upload = False,
    arms: sketching.Arms = "none,safe",
    congestion_control: sketching.CongestionControls = "cubic",
    implementation: sketching.Implementation = "noq-fec",
    trials: sketching.Trials = 1000,
    db: arguments.Database = arguments.DATABASE,
    jobs: arguments.Jobs = "auto",
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Compare variants in networks of these ranges at once, in virtual time: which helps, and by how much?

    The campaign is kept, by a name that its options make: the same command again shows it without a run. 0
    when all trials are ok, 1 when some are not.
    """
    from fecbench.designs.design import parse
    from fecbench.results.analysis import frames
    from fecbench.results.analysis.averages import SENT
    from fecbench.results.metrics import of_workloads
    from fecbench.results.report.answer_sentences import answers, lead
    from fecbench.results.report.finding_sentences import findings
    from fecbench.runners.campaign.request import request
    from fecbench.runners.commands.console.campaign_summary import of_campaign, states_line, table_of_answers
    from fecbench.runners.commands.console.running import run_here
    from fecbench.runners.engines.admission import parse_jobs
    from fecbench.runners.tasks.task import VIRTUAL

    available = implementations_in(implementations)
    compared = sketching.arms(arms, congestion_control, implementation, available)
    sketch = sketching.sketch(
        *(_UNNAMED, bandwidth, rtt, loss, burst, queue_bdp, size, upload, compared, trials)
    )
    digest = hashlib.sha256(sketch.text().encode()).hexdigest()[:8]
    sketch = replace(sketch, name=f"{_UNNAMED}-{digest}")
    design = parse(sketch.text(), f"{sketch.name}.toml")
    campaign_request = request(
        design,
        available,
        backend=VIRTUAL,
        jobs=parse_jobs("--jobs", jobs),
        calibrate=False,
        stop_when_alike=True,
    )
    with open_database(db, create=True) as database:
        campaign = run_here(campaign_request, database)
        states = database.states_of(campaign.id)
        frame = frames.trials(database, campaign, {*of_workloads(campaign).values(), *SENT})
        table = findings(frame, campaign)
        if as_json:
            _print_document(database, campaign, table)
        else:
            for answer in answers(table, campaign):
                say(answer.sentence)
            say(lead(campaign))
            print_table(table_of_answers(table, campaign))
            say(states_line(states, campaign.planned_trials))
            say_next(f"fecbench report {of_campaign(db, campaign)}, and each network in report/report.html")
            say_next("fecbench new FILE.toml with the same options writes the design, to go on with")
    return 0 if set(states) <= {"ok"} else 1


def _print_document(database: Database, campaign: CampaignInfo, table: pd.DataFrame) -> None:
    from fecbench.results.report.answer_sentences import answers

    print_document(
        {
            "campaign": campaign.name,
            "planned": campaign.planned_trials,
            "states": dict(sorted(database.states_of(campaign.id).items())),
            "answers": [answer.model_dump() for answer in answers(table, campaign)],
            "design": campaign.design_text,
        }
    )
