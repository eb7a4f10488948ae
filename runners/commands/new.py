"""`fecbench new`: a design of one's own ranges, with a remark on each line, to go on with in an editor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fecbench.runners.commands.console import arguments, sketching
from fecbench.runners.commands.console.choice import implementations_in
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import say
from fecbench.runners.refusal import Refusal
from fecbench.whole_files import write_text


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The design to write.")],
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
    implementations: arguments.ImplementationFolders = None,
) -> None:
    """Write a design with these ranges of networks, these transfers and these variants. No file is replaced.

    `fecbench try` with the same options runs it at once.
    """
    from fecbench.designs.design import parse

    check_file("FILE", file, (".toml",))
    if file.exists():
        raise Refusal(f"FILE {file}: is there already: give the name of a new file")
    available = implementations_in(implementations)
    compared = sketching.arms(arms, congestion_control, implementation, available)
    text = sketching.sketch(
        *(file.stem, bandwidth, rtt, loss, burst, queue_bdp, size, upload, compared, trials)
    ).text()
    parse(text, file)  # refuses what cannot be a design, before a file is there
    with writing("FILE", file):
        write_text(file, text)
    say(f"{file}: written")
    say(f"next: fecbench plan {file}, then fecbench run {file} --engine virtual --db {file.stem}.sqlite")
