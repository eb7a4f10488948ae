"""What both ends count where packets are lost stands beside what the link counted."""

from fecbench.dropper.command import Counters
from fecbench.runners.conformance.losses import SLACK, check, problems_of_counters
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.outcome import DropperOutcome, EndpointOutcome, Outcome
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
        f"{SENT} {CAME} + {REPAIR}: but {CAME} frames came to the link (are repair packets in both?)",
    ),
    (
        *({}, {"packets_received": CAME - LOST}),
        f"client: packets_received - packets_recovered + repair_received = {CAME - LOST} - 0 + {REPAIR}:"
        f" but {CAME - LOST} frames arrived (are repair packets in both?)",
    ),
    (
        *({"packets_sent": 1}, {}),
        f"{SENT} 1 + {REPAIR}: but {CAME} frames came to the link, each with a packet at least",
    ),
    ({"packets_lost": 0}, {}, f"server: packets_lost = 0: but {LOST} packets that it sent were lost"),
    ({"losses_declared": 0}, {}, f"server: losses_declared = 0: but {LOST} packets"),
]


def test_a_counter_that_is_not_the_links_is_named() -> None:
    for server, client, said in WRONG:
        (problem,) = problems_of_counters(outcome({**SERVER, **server}, {**CLIENT, **client}))
        assert problem.startswith(said)


def test_losses_that_were_all_recovered_need_not_be_declared() -> None:
    server, client = {**SERVER, "packets_lost": 0}, {**CLIENT, "packets_recovered": LOST}
    client["packets_received"] += LOST
    assert list(problems_of_counters(outcome(server, client))) == []


def test_what_has_no_download_is_not_tried() -> None:
    (part,) = check(ours().find("udp", "tests"))
    assert (part.good, part.tried) == (True, False)
    assert part.detail == "only a download tells, and it has none"
