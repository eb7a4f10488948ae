"""The page of what a database holds is complete, and the one in the guide is the one that is made."""

import re
from pathlib import Path

from fecbench.checkout import REPOSITORY
from fecbench.results import dictionary, metrics
from fecbench.results.analysis import frames
from fecbench.results.store import schema
from fecbench.results.store.database import Database
from tests.support import samples


def test_the_guide_has_the_page_that_is_made() -> None:
    page = dictionary.page()
    assert (REPOSITORY / "docs" / "what-a-database-holds.md").read_text() == page, (
        "python -m fecbench.results.dictionary > docs/what-a-database-holds.md"
    )


def test_every_table_and_every_column_says_what_it_holds() -> None:
    for table in schema.tables.sorted_tables:
        assert table.info["meaning"].endswith(".")
        for column in table.columns:
            assert column.doc, f"{table.name}.{column.name}"


def test_every_metric_and_column_of_a_recorded_campaign_stands_on_the_page(shared_folder: Path) -> None:
    """The columns are those of each sample's smallest campaign: reading the others takes long."""
    page, described = dictionary.page(), {column.name for column in metrics.COLUMNS}
    for sample in samples.NAMES:
        with Database.open(str(samples.database_of(sample, shared_folder)), read_only=True) as database:
            campaigns = database.campaigns()
            names = {name for campaign in campaigns for name in database.metric_names(campaign.id)}
            smallest = min(campaigns, key=lambda campaign: campaign.planned_trials)
            columns = {
                re.sub(r"^seed\.\w+\.(up|down)$", "seed.LINK.DIRECTION", name)
                for name in frames.trials(database, smallest)
            }
        assert names and {"stalled_s", "host"} <= columns, sample
        of_design = {name for point in smallest.points for name in point}
        of_design |= {name for workload in smallest.workloads for name in workload["parameters"]}
        for name in (names | columns) - of_design - described:
            assert metrics.of(name).meaning and metrics.of(name).meaning in page, (sample, name)


def test_a_metric_that_is_not_registered_has_no_meaning() -> None:
    assert metrics.of("client.dct_s").meaning
    assert not metrics.of("client.pace_mbps").meaning
