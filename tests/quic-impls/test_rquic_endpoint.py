"""The rQUIC endpoint over loopback: what it does beyond the contract."""

from typing import Any

import pytest

from fecbench.runners.implementations.finding import ours

DECLARATION = ours().find("rquic", "tests").declaration
COUNTERS = {
    *("generations_sent", "generation_size_min", "generation_size_max", "code_rate_mean", "overhead"),
    *("protected_delivered", "protected_lost", "residual_loss"),
}
CODES = ("xor", "rlc")


@pytest.fixture
def name() -> str:
    return "rquic"


@pytest.mark.parametrize("workload", ["download", "upload"])
@pytest.mark.parametrize("scheme", DECLARATION.options["scheme"].choices)
def test_content_of_any_size_is_transferred_and_protected_by_the_codes_alone(
    endpoints: Any, assignment: dict[str, Any], scheme: str, workload: str
) -> None:
    for http in DECLARATION.options["http"].choices:
        for size in (0, 1, 1000, 1_000_000):
            options = {"scheme": scheme, "http": http}
            content = {"name": workload, "size_bytes": size}
            client, server = endpoints.transfer({**assignment, "options": options, "workload": content})
            for metrics in (client, server):
                assert metrics.keys() >= COUNTERS
                assert scheme in CODES or metrics["repair_sent"] == 0
                assert scheme in (*CODES, "hold") or metrics["source_sent"] == 0
            # A short transfer may travel in the same datagrams as the handshake, which are never protected.
            if size >= 1_000_000 and scheme in CODES:
                assert client["repair_received"] + server["repair_received"] > 0
            assert max(client["bytes_received"], server["bytes_received"]) > size


@pytest.mark.parametrize("rate", DECLARATION.options["rate"].choices)
def test_the_code_rate_over_time_follows_the_periods(
    endpoints: Any, assignment: dict[str, Any], rows_of: Any, rate: str
) -> None:
    assignment |= {
        "options": {"rate": rate, "period_ms": 1},
        "workload": {"name": "download", "size_bytes": 5_000_000},
        "series": ["code_rate"],
    }
    _, metrics = endpoints.transfer(assignment)
    rows = rows_of("server", "code_rate")
    assert rows[0]["q"] == {"constant": 9, "paper": 32, "code2021": 10, "campaign2021": 10}[rate]
    assert (len(rows) > 1) == (rate != "constant")
    assert all(0 < row["q"] <= 63 for row in rows)
    assert sum(row["delivered"] for row in rows) <= metrics["protected_delivered"]
