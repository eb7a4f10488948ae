"""The matrix of clients and servers says of each pair what its trials say, and nothing of a busy machine."""

from typing import Any

import pytest

from fecbench.results.analysis import interoperability
from fecbench.results.analysis.interoperability import Matrix
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, TrialKey
from tests.support.campaigns import new_campaign, trial

ENDS = {"a": ("one", {}), "b": ("two", {"scheme": "none"}), "b with FEC": ("two", {"scheme": "rlc"})}


def design_text(*, pairs: bool = True) -> str:
    tables = []
    for client, (implementation, options) in ENDS.items():
        for server in ENDS if pairs else [client]:
            label = client if server == client else f"{client}, server {server}"
            written = ", ".join(f'{name} = "{value}"' for name, value in options.items())
            lines = ["[[variants]]", f'label = "{label}"', f'implementation = "{implementation}"']
            lines += [f"options = {{ {written} }}", f'server = "{server}"' if server != client else ""]
            tables.append("\n".join(lines))
    return "\n".join(tables)


@pytest.fixture
def campaign(database: Database) -> CampaignInfo:
    return make(database, design_text())


def make(database: Database, text: str) -> CampaignInfo:
    return database.create_campaign(
        new_campaign(
            "pairs",
            design_text=text,
            points=[{"loss.p": 0.05}, {"loss.p": 0.1}],
            variants=[
                {"label": line.split('"')[1], "implementation": "one", "options": {}, "baseline": False}
                for line in text.splitlines()
                if line.startswith("label")
            ],
        )
    )


def record(database: Database, campaign: CampaignInfo, variant: str, point: int = 0, **told: Any) -> None:
    key = TrialKey(variant, "download-1", point, 0)
    database.record(campaign.id, trial(key, **told))


def matrix(database: Database, campaign: CampaignInfo) -> Matrix:
    matrix_found = interoperability.of_campaign(database, campaign)
    assert matrix_found is not None
    return matrix_found


def test_each_pair_has_the_state_of_its_trials_and_the_reason(
    database: Database, campaign: CampaignInfo
) -> None:
    record(database, campaign, "a")
    record(database, campaign, "a, server b", state="failed", reason="wrong bytes")
    record(database, campaign, "b, server a", state="unsupported", reason="no such workload")
    record(database, campaign, "b with FEC, server a", state="timeout", reason="after 20 s")
    matrix_found = matrix(database, campaign)
    assert matrix_found.ends == list(ENDS)
    assert matrix_found.rows() == [["a", "✓", "✕", "✕"], ["b", "?", "✕", "✕"], ["b with FEC", "✕", "✕", "✕"]]
    assert "✕ client a, server b: wrong bytes" in matrix_found.reasons
    assert "? client b, server a: no such workload" in matrix_found.reasons
    assert "✕ client b with FEC, server a: it ran out of time: after 20 s" in matrix_found.reasons
    assert "✕ client a, server b with FEC: it was not run" in matrix_found.reasons
    assert len(matrix_found.reasons) == 8


def test_one_trial_of_several_that_is_not_ok_decides(database: Database, campaign: CampaignInfo) -> None:
    record(database, campaign, "a", point=0)
    record(database, campaign, "a", point=1, state="failed", reason="wrong bytes")
    cell = matrix(database, campaign).cell("a", "a")
    assert cell is not None
    assert (cell.state, cell.reason) == ("failed", "wrong bytes")


def test_a_failure_is_not_hidden_by_a_trial_that_is_unsupported_or_invalid(
    database: Database, campaign: CampaignInfo
) -> None:
    for client, other in (("a", "unsupported"), ("b", "invalid")):
        record(database, campaign, client, 0, state=other, reason="127")
        record(database, campaign, client, 1, state="failed", reason="wrong bytes")
    record(database, campaign, "b with FEC", 0, state="invalid", reason="late")
    record(database, campaign, "b with FEC", 1, state="unsupported", reason="127")
    of_pairs = matrix(database, campaign)
    cells = [cell for cell in of_pairs.cells if cell.client == cell.server]
    assert [(cell.state, cell.reason) for cell in cells] == [
        ("failed", "wrong bytes"),
        ("failed", "wrong bytes"),
        ("unsupported", "127"),
    ]


@pytest.mark.parametrize("judged", ["invalid", "failed"])
def test_a_trial_counts_by_what_both_ends_said_whatever_its_times_were(
    database: Database, campaign: CampaignInfo, judged: Any
) -> None:
    for client, message in (
        ("a", {"state": "ok", "reason": ""}),
        ("b", {"state": "unsupported", "reason": "no such workload"}),
        ("b with FEC", {"state": "timeout", "reason": "after 20 s"}),
        ("a, server b", {"state": "failed", "reason": "wrong bytes"}),
    ):
        record(database, campaign, client, state=judged, reason="late", checks={"by_ends": message})
    matrix_found = matrix(database, campaign)
    assert [matrix_found.rows()[index][index + 1] for index in range(3)] == ["✓", "?", "✕"]
    assert "✕ client a, server b: wrong bytes" in matrix_found.reasons
    assert "✕ client b with FEC, server b with FEC: it ran out of time: after 20 s" in matrix_found.reasons


def test_nothing_is_said_of_a_trial_that_never_began(database: Database, campaign: CampaignInfo) -> None:
    record(database, campaign, "a", state="invalid", reason="no namespace")
    reasons = matrix(database, campaign).reasons
    assert "✕ client a, server a: nothing can be said, the trial is invalid: no namespace" in reasons


@pytest.mark.parametrize("text", ["", design_text(pairs=False)])
def test_a_campaign_whose_variants_serve_themselves_has_no_matrix(database: Database, text: str) -> None:
    assert interoperability.of_campaign(database, make(database, text)) is None
