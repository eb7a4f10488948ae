"""Differences of trials in virtual time from emulated ones, and what is left of them when virtual endpoints
take time of a processor for TLS, too.

    python -m bench.processor_time

Emulates 40 short downloads one after another, which takes a minute and root. On a machine that does anything
else emulated ones take longer, and some are invalid.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from fecbench import designs, results
from fecbench.checkout import REPOSITORY

if TYPE_CHECKING:
    import pandas as pd

DESIGN = REPOSITORY / "bench" / "processor_time.toml"
HANDSHAKE = "processor.handshake_ms"
HANDSHAKE_MS = (0, 0.5, 1, 1.5, 2)
"""Handshake times of each side."""
METRICS = {"client.handshake_s": "handshake", "client.dct_s": "download"}
MS_PER_S = 1e3
WIDTH = 100  # no figure is cut


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        emulated = trials(Path(folder), "local", {})
        virtual = trials(Path(folder), "virtual", {HANDSHAKE: {"choices": list(HANDSHAKE_MS)}})
    for metric, what in METRICS.items():
        print_gaps(what, gaps(virtual, emulated, metric))


def trials(folder: Path, engine: str, more_factors: dict[str, object]) -> "pd.DataFrame":
    """The ok trials of the design with more factors, run by this engine.

    Raises RuntimeError when it ends with neither 0 nor 1, which says that not every trial is ok.
    """
    design = designs.load(DESIGN)
    factors = {**tomllib.loads(design.text)["factors"], **more_factors}
    path, database = folder / f"{engine}.toml", folder / f"{engine}.sqlite"
    path.write_text(designs.rewritten(design, factors=factors).text)
    program = str(Path(sys.executable).parent / "fecbench")
    ended = subprocess.run(
        [program, "run", str(path), "--engine", engine, "--db", str(database), "--no-calibrate"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if ended.returncode not in (0, 1):
        raise RuntimeError(ended.stderr.strip())
    table = results.open(str(database))[design.name].trials(list(METRICS), harness=False)
    return table[table["state"] == "ok"]


def gaps(virtual: "pd.DataFrame", emulated: "pd.DataFrame", metric: str) -> "pd.DataFrame":
    """Return for each variant and one-way delay the median of a metric emulated, in ms, and the number of
    trials; and virtual / emulated - 1 by the time of each side for the handshake."""
    of_emulated = emulated.groupby(["variant", "owd_ms"])[metric]
    medians = virtual.groupby(["variant", "owd_ms", HANDSHAKE])[metric].median().unstack()
    table = medians.div(of_emulated.median(), axis=0) - 1
    table.insert(0, "n", of_emulated.size())
    table.insert(0, "emulated_ms", of_emulated.median() * MS_PER_S)
    return table


def print_gaps(what: str, gaps_of_metric: "pd.DataFrame") -> None:
    title = f"{what}: virtual / emulated - 1, by the ms that each side takes for TLS; medians"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in ("RTT, ms", "emulated, ms", "of", *(f"{time_ms:g} ms" for time_ms in HANDSHAKE_MS)):
        table.add_column(heading, justify="right")
    for row in gaps_of_metric.reset_index().to_dict("records"):
        shares = [f"{row[time_ms]:+.1%}" for time_ms in HANDSHAKE_MS]
        rtt_ms, emulated_ms = 2 * row["owd_ms"], row["emulated_ms"]
        table.add_row(row["variant"], f"{rtt_ms:g}", f"{emulated_ms:.1f}", f"{row['n']}", *shares)
    Console(width=WIDTH).print(table)


if __name__ == "__main__":
    main()
