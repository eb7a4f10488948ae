"""Counters of both ends where packets are lost are compared with those of the link."""

import re
import shutil
from pathlib import Path

import pytest

from fecbench.dropper.command import Counters
from fecbench.runners.conformance.complaints import seen_repair
from fecbench.runners.conformance.lossy_download import SHORT_BYTES, SLACK, check, problems_of_counters
from fecbench.runners.implementations.finding import ours
from fecbench.runners.implementations.implementation import read
from fecbench.runners.tasks.outcome import DropperOutcome, EndpointOutcome, Outcome
from tests.support import needs
from tests.support.link_reports import direction_report, link_report

CAME, LOST, REPAIR = 900, 60, 200


def outcome(server: dict[str, float], client: dict[str, float]) -> Outcome:
    """A download over a link to which CAME frames came each way, and lost LOST of them."""
    report = direction_report(CAME, queue_dropped=LOST // 2, frames_out=CAME - LOST // 2)
    dropped = Counters(CAME - LOST // 2, LOST - LOST // 2, other=0, gso=0, truncated=0, fragments=0)
    recorded = DropperOutcome(counters=dropped, packets=0, bitmap=b"")
    return Outcome(
        endpoints={"server": EndpointOutcome(metrics=server), "client": EndpointOutcome(metrics=client)},
        links={"internet": link_report({"up": report, "down": report})},
        droppers={"internet": {"up": recorded, "down": recorded}},
    )


SERVER = {"packets_sent": CAME - REPAIR, "repair_sent": REPAIR, "packets_lost": LOST, "losses_declared": LOST}
CLIENT = {"packets_received": CAME - LOST - REPAIR, "repair_received": REPAIR}


def test_counters_that_are_the_links_but_for_some_packets_or_are_not_reported_are_right() -> None:
    for off_by in (-SLACK, 0, SLACK):
        server = {**SERVER, "packets_sent": SERVER["packets_sent"] + off_by}
        client = {**CLIENT, "packets_received": CLIENT["packets_received"] + off_by}
        assert list(problems_of_counters(outcome(server, client))) == []
    assert list(problems_of_counters(outcome({}, {}))) == []


SENT = "server: packets_sent + repair_sent ="
WRONG: list[tuple[dict[str, float], dict[str, float], str]] = [
    (
        *({"packets_sent": CAME}, {}),
        f"{SENT} {CAME} + {REPAIR}: but {CAME} frames came to the link (are repair packets in both?",
    ),
    (
        *({}, {"packets_received": CAME - LOST}),
        f"client: packets_received - packets_recovered + repair_received = {CAME - LOST} - 0 + {REPAIR}:"
        f" but {CAME - LOST} frames arrived (are repair packets in both?",
    ),
    (
        *({"packets_sent": 1}, {}),
        f"{SENT} 1 + {REPAIR}: but {CAME} frames came to the link, each with a packet at least",
    ),
    ({"packets_lost": 0}, {}, f"server: packets_lost = 0: but {LOST} packets that it sent were lost"),
    ({"losses_declared": 0}, {}, f"server: losses_declared = 0: but {LOST} packets"),
]


def test_a_counter_that_is_not_the_links_is_named() -> None:
    for server, client, message in WRONG:
        (problem,) = problems_of_counters(outcome({**SERVER, **server}, {**CLIENT, **client}))
        assert problem.startswith(message)


def test_losses_that_were_all_recovered_need_not_be_declared() -> None:
    server, client = {**SERVER, "packets_lost": 0}, {**CLIENT, "packets_recovered": LOST}
    client["packets_received"] += LOST
    assert list(problems_of_counters(outcome(server, client))) == []


def test_what_has_no_download_is_not_tried() -> None:
    (part,) = check(ours().find("udp", "tests"))
    assert (part.good, part.tried) == (True, False)
    assert part.detail == "only a download tells, and it has none"


def test_packets_that_carry_repair_symbols_and_data_count_once() -> None:
    shared = REPAIR // 2
    server = {**SERVER, "packets_sent": CAME - REPAIR + shared, "repair_shared_sent": shared}
    client = {**CLIENT, "packets_received": CAME - LOST - REPAIR + shared, "repair_shared_received": shared}
    assert list(problems_of_counters(outcome(server, client))) == []
    server["repair_shared_sent"] = client["repair_shared_received"] = 0
    of_server, of_client = problems_of_counters(outcome(server, client))
    assert of_server.startswith(
        "server: packets_sent + repair_sent - repair_shared_sent ="
        f" {CAME - REPAIR + shared} + {REPAIR} - 0: but"
    )
    assert "repair_shared_received = " in of_client


WAITS = {
    'name = "noq-fec"': 'name = "waits"',
    'build = ["make"]': 'build = ["true"]',
    'default = "safe"': 'default = "constant"',
    'default = "idle"': 'default = "never"',
    "default = 3\n": "default = 66\n",
    "default = 2\n": "default = 60\n",
}
"""A code that sends repair symbols of full blocks alone, of 60 packets."""


@pytest.fixture
def waits(tmp_path: Path) -> Path:
    """noq-fec with such defaults, and without a word of that in impl.toml."""
    ours_ = ours().find("noq-fec", "tests")
    folder = tmp_path / "waits"
    (folder / "build").mkdir(parents=True)
    shutil.copy(ours_.folder / "build" / "noq-fec", folder / "build")
    text = (ours_.folder / "impl.toml").read_text()
    for before, after in WAITS.items():
        text = text.replace(before, after, 1)
    text = re.sub(r"(?ms)^repair_may_lack = .*?^source_may_lack.*?$", "", text)
    text = re.sub(r"(?m)^(simulator|sources|toolchain|build) = .*$", "", text)
    (folder / "impl.toml").write_text(f'build = ["true"]\n{text}')
    return folder


@needs.ROOT
@needs.built(ours().find("noq-fec", "tests"))
def test_a_code_that_waits_is_seen_in_short_downloads_and_what_allows_it_is_named(waits: Path) -> None:
    parts = {part.part: part for part in check(read(waits))}
    assert parts["counters under losses, FEC on"].good
    assert parts["repair symbols under losses"].good
    short = [parts[f"{size} bytes under losses, FEC on"] for size in SHORT_BYTES]
    assert [part.good for part in short] == [False] * len(short)
    for part in short:
        assert "server: FEC is on, but no repair symbol was sent" in part.detail
        assert part.detail.endswith('impl.toml: repair_may_lack = [{ scheme = "rs" }]')
    text = (waits / "impl.toml").read_text()
    (waits / "impl.toml").write_text(f'{text}repair_may_lack = [{{ scheme = "rs" }}]\n')
    assert [part for part in check(read(waits)) if not part.good] == []


def test_a_check_that_never_saw_a_repair_symbol_says_so() -> None:
    never = seen_repair("repair symbols", [0.0, 0.0])
    assert (never.good, never.tried, never.detail) == (
        True,
        False,
        "never saw one, in 2 transfers with FEC on",
    )
    assert seen_repair("repair symbols", [0.0, 3.0]).tried
