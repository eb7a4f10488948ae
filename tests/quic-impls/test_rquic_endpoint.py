"""The rQUIC endpoint over loopback: what it does beyond the contract."""

from itertools import product
from typing import Any

from fecbench.runners.implementations.finding import ours

NAME = "rquic"

DECLARATION = ours().find("rquic", "tests").declaration
COUNTERS = {
    *("generations_sent", "generation_size_min", "generation_size_max", "code_rate_mean", "overhead"),
    *("protected_delivered", "protected_lost", "residual_loss"),
}
CODES = ("xor", "rlc")


def test_content_is_transferred_and_protected_by_the_codes_alone(
    endpoints: Any, assignment: dict[str, Any]
) -> None:
    schemes, protocols = (DECLARATION.options[name].choices for name in ("scheme", "http"))
    for (number, scheme), workload in product(enumerate(schemes), ("download", "upload")):
        options = {"scheme": scheme, "http": protocols[(number + (workload == "upload")) % len(protocols)]}
        content = {"name": workload, "size_bytes": 1_000_000}
        client, server = endpoints.transfer({**assignment, "options": options, "workload": content})
        for metrics in (client, server):
            ratios = {"code_rate_mean": "repair_sent", "residual_loss": "protected_delivered"}
            unmeasured = {ratio for ratio, of in ratios.items() if metrics[of] == 0}
            assert metrics.keys() >= COUNTERS - unmeasured and metrics.keys().isdisjoint(unmeasured)
            assert scheme in CODES or metrics["repair_sent"] == 0
            assert scheme in (*CODES, "hold") or metrics["source_sent"] == 0
        assert (client["repair_received"] + server["repair_received"] > 0) == (scheme in CODES)
        assert max(client["bytes_received"], server["bytes_received"]) > 1_000_000


def test_the_code_rate_over_time_follows_the_periods(
    endpoints: Any, assignment: dict[str, Any], rows_of: Any
) -> None:
    first = {"constant": 9, "paper": 32, "code2021": 10, "campaign2021": 10}
    assert first.keys() == set(DECLARATION.options["rate"].choices)
    for rate, q in first.items():
        assignment |= {
            "options": {"rate": rate, "period_ms": 1},
            "workload": {"name": "download", "size_bytes": 5_000_000},
            "series": ["code_rate"],
        }
        _, metrics = endpoints.transfer(assignment)
        rows = rows_of("server", "code_rate")
        assert rows[0]["q"] == q
        assert (len(rows) > 1) == (rate != "constant")
        assert all(0 < row["q"] <= 63 for row in rows)
        assert sum(row["delivered"] for row in rows) <= metrics["protected_delivered"]
