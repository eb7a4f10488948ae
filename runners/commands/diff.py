"""`fecbench diff`: two trials over one axis, the first packet at which they part, and what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fecbench.runners.commands.console import arguments, completion
from fecbench.runners.commands.console.choice import implementations_in, one_trial, open_database
from fecbench.runners.commands.console.destination import checked_plot
from fecbench.runners.refusal import Refusal


def diff(
    trial: arguments.Trial,
    other: Annotated[
        int, typer.Argument(help="The number of the other trial.", autocompletion=completion.trials)
    ],
    plot: arguments.TrialPlot = None,
    output: arguments.OptionalOutputFolder = None,
    db: arguments.Database = arguments.DATABASE,
    campaign: arguments.Campaign = "",
    implementations: arguments.ImplementationFolders = None,
    as_json: arguments.Json = False,
) -> int:
    """Run two trials again, and show where they part; 0 when both went as they were recorded.

    The figure has both over one axis of time, the first packet at which they part marked. The table has the
    metrics that differ. The folder of --output holds of each trial what `fecbench replay` leaves, its qlog
    for qvis among it, in a folder of its number.
    """
    if trial == other:
        raise Refusal(f"diff {trial} {other}: is one trial: give two")
    figure = checked_plot(plot or Path(f"diff-{trial}-{other}.png"), trial)
    with open_database(db) as database:
        from fecbench.runners.commands.console.both_trials import show_both

        available = implementations_in(implementations)
        trials = [one_trial(database, campaign, number) for number in (trial, other)]
    return show_both("fecbench diff", trials, available, figure, output, as_json)
