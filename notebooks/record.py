"""Make a sample of recorded campaigns, small enough for the repository: `samples/NAME.sqlite.xz`.

    .venv/bin/python notebooks/record.py networking2019-virtual out/networking2019-virtual.sqlite

A sample omits what no claim, figure or table of the notebooks and the guide reads of trials: seeds, which
follow from the design, what was asked for, what links counted, what endpoints wrote, how long the harness
took, packets' verdicts, all checks but CHECKS, and all metrics but METRICS. Keys, states, digests and the
whole provenance stay, so the sample tells how to run the campaigns again and what must come out; of paths in
the command, the last part stays. Campaigns of several databases become those of one.

Refused: a sample of which a claim or a digest differs from those of its databases.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from fecbench import results
from fecbench.results import papers
from fecbench.results.store.digest import of_metrics, of_trial

SAMPLES = Path(__file__).parent / "samples"

PICTURES = ("320x240", "384x288", "512x384", "640x480", "720x480", "1280x720", "1920x1080")
"""Pictures of our film."""

# Metrics of campaigns whose name begins so, which the first notebook and the guide read, or the figures of a
# paper, its claims and their differences.
METRICS = {
    "demo": (
        *("client.dct_s", "client.packets_recovered"),
        *("server.packets_lost", "server.packets_sent", "server.repair_sent"),
    ),
    "networking2019-": (
        *("client.dct_s", "competition.background_mbps", "competition.foreground_mbps"),
        *("background_server.window_reductions", "background_server.window_restorations"),
    ),
    "rquic2021-": (
        *("client.dct_s", "client.recovered_late", "client.recovered_out_of_order", "server.overhead"),
        *("server.packets_lost", "server.packets_sent", "server.spurious_losses"),
        *("video.qoe_log", *(f"video.share_{size}" for size in PICTURES)),
    ),
    "starlink2022-": ("client.dct_s", "client.repair_sent"),
    "moskvitin-": ("client.dct_s",),
    "thesis2018-": tuple(
        f"messages.{name}"
        for name in (
            *("overhead", "received_bytes", "rebuffering_s", "received_2_bytes", "rebuffering_2_s"),
            *("on_time_ratio_200ms", "latency_p50_ms"),
        )
    ),
    "changing-links": ("client.dct_s",),
    "losses-of-": ("client.dct_s",),
    "multipath-bulk": ("client.dct_s",),
    "never-harms": ("client.dct_s",),
    "realtime-": tuple(
        f"messages.on_time_ratio_{playout}ms" for playout in (20, 40, 60, 80, 100, 120, 150, 200, 300)
    ),
    "tcp-or-fec": ("client.dct_s", "client.handshake_s"),
    "video-": (
        *("video.mean_kbps", "video.qoe_lin", "video.qoe_log", "video.stall_ratio", "video.stalls"),
        *(f"video.share_{size}" for size in PICTURES),
    ),
}
# Claims about these ask which packets were lost,
WITH_VERDICTS = ("networking2019-mss", "starlink2022-")
# and about these, which of them had data.
WITH_CONTENT = "starlink2022-"

# Checks of a trial by the harness that stay.
CHECKS = ("digest", "metrics_digest", "stalled_s")
# Columns of `trials` that hold JSON, and that nothing here reads.
_EMPTIED = ("links", "stderr", "overhead_s", "seeds")
# Tables with ids of their own, each after those that it refers to; which column refers to which table.
_REFERENCES = {
    "campaigns": {"id": "campaigns"},
    "points": {"campaign_id": "campaigns"},
    "variants": {"campaign_id": "campaigns"},
    "workloads": {"campaign_id": "campaigns"},
    "stops": {"campaign_id": "campaigns"},
    "starts": {"id": "starts", "campaign_id": "campaigns"},
    "tasks": {"id": "tasks", "campaign_id": "campaigns"},
    "trials": {"id": "trials", "campaign_id": "campaigns", "start_id": "starts", "task_id": "tasks"},
    "metrics": {"trial_id": "trials"},
    "verdicts": {"trial_id": "trials"},
    "series": {"trial_id": "trials"},
}


def sample(databases: Sequence[Path], path: Path) -> None:
    """Write the campaigns of these databases, made small, into a new database."""
    with closing(sqlite3.connect(databases[0])) as first:
        first.execute("VACUUM INTO ?", (str(path),))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for database in databases[1:]:
            _add(connection, database)
        connection.executemany(
            "UPDATE trials SET checks = json_patch(checks, ?) WHERE id = ?", _digests(path)
        )
        _shrink(connection)
        connection.execute("VACUUM")


def _digests(path: Path) -> list[tuple[str, int]]:
    """The digests of trials that an earlier fecbench recorded, while what they are made of is there."""
    with results.open(str(path)) as opened:
        stored = [
            trial for campaign in opened.database.campaigns() for trial in opened.database.trials(campaign.id)
        ]
    return [
        (json.dumps({"digest": of_trial(trial.record), "metrics_digest": of_metrics(trial.record)}), trial.id)
        for trial in stored
        if "metrics_digest" not in trial.record.checks
    ]


def _add(connection: sqlite3.Connection, database: Path) -> None:
    """Copy the campaigns of another database; what they are numbered by goes on where these end."""
    connection.execute("ATTACH ? AS other", (str(database),))
    highest = {
        table: connection.execute(f"SELECT coalesce(max(id), 0) FROM main.{table}").fetchone()[0]
        for table, references in _REFERENCES.items()
        if references.get("id") == table
    }
    for table, references in _REFERENCES.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA other.table_info({table})")]
        if not columns:
            continue  # a database that is older than the table has nothing to add
        values = [f"{name} + {highest[references[name]]}" if name in references else name for name in columns]
        connection.execute(
            f"INSERT INTO main.{table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM other.{table}"
        )
    connection.execute("DETACH other")


def _shrink(connection: sqlite3.Connection) -> None:
    connection.execute(f"DELETE FROM series WHERE trial_id NOT IN ({_trials_of(WITH_CONTENT)})")
    emptied = ", ".join(f"{column} = '{{}}'" for column in _EMPTIED)
    connection.execute(f"UPDATE trials SET {emptied} WHERE id NOT IN ({_trials_of(WITH_CONTENT)})")
    connection.execute("UPDATE trials SET duration_s = round(duration_s, 1), task_id = NULL")
    connection.execute("DELETE FROM tasks")
    # A patch leaves out what is null: only emulated trials stall.
    columns = ", ".join(f"'{name}', json_extract(checks, '$.{name}')" for name in CHECKS)
    connection.execute(
        f"UPDATE trials SET checks = json_patch('{{}}', json_object({columns}))"
        " WHERE json_extract(checks, '$.digest') IS NOT NULL"
    )
    for beginning, metrics in METRICS.items():
        read = ", ".join(f"'{name}'" for name in metrics)
        connection.execute(
            f"DELETE FROM metrics WHERE endpoint || '.' || name NOT IN ({read})"
            f" AND trial_id IN ({_trials_of(beginning)})"
        )
    with_verdicts = " UNION ".join(_trials_of(beginning) for beginning in WITH_VERDICTS)
    connection.execute(f"DELETE FROM verdicts WHERE trial_id NOT IN ({with_verdicts})")
    connection.execute(f"UPDATE trials SET dropper = '{{}}' WHERE id NOT IN ({with_verdicts})")
    connection.create_function("without_folders", 1, _without_folders, deterministic=True)
    for table in ("campaigns", "starts"):
        connection.execute(
            f"UPDATE {table} SET provenance ="
            " json_set(provenance, '$.command', json(without_folders(provenance ->> '$.command')))"
        )


def _without_folders(command: str) -> str:
    """The command, a JSON array, without where on the machine its files are."""
    words: list[str] = json.loads(command)
    return json.dumps([Path(word).name if Path(word).is_absolute() else word for word in words])


def _trials_of(beginning: str) -> str:
    """The query for the ids of all trials of campaigns whose name begins so."""
    return (
        "SELECT trials.id FROM trials JOIN campaigns ON campaigns.id = campaign_id"
        f" WHERE name LIKE '{beginning}%'"
    )


def came_out(database: Path) -> Iterator[tuple[str, str, object]]:
    """Yield what a sample must not change of each campaign: name, digest, and results for papers."""
    with results.open(str(database)) as opened:
        for name in opened.campaigns()["campaign"]:
            campaign = opened[name]
            trials = campaign.trials()
            lines = [
                (
                    figure.number,
                    figure.claims(trials, campaign.info),
                    figure.differences(trials, campaign.info),
                )
                for figure in papers.figures_of(campaign.info)
            ]
            yield name, campaign.database.digest(campaign.info.id), lines


def main(name: str, databases: Sequence[Path]) -> None:
    compressed = SAMPLES / f"{name}.sqlite.xz"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.sqlite"
        sample(databases, path)
        whole = [campaign for database in databases for campaign in came_out(database)]
        for was, now in zip(sorted(whole, key=lambda result: result[0]), sorted(came_out(path)), strict=True):
            if was != now:
                raise SystemExit(f"{was[0]}: the sample says {now[1:]}, and its databases say {was[1:]}")
            print(now[0], now[1])
        compressed.write_bytes(lzma.compress(path.read_bytes(), preset=lzma.PRESET_EXTREME | 9))
    print(f"{compressed.name}: {compressed.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], [Path(argument) for argument in sys.argv[2:]])
