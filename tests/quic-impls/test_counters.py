"""The counters of FEC have one meaning (quic-impls/contract/metrics.md): both implementations' simulators
play one list of losses, and count what it implies."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fecbench.dropper.model import Pattern
from tests.support.simulations import Simulator, Tasks, download, exits, metrics

IMPLEMENTATIONS = ("noq-fec", "rquic")
# Two packets, and their repair symbol: it comes before three newer packets have QUIC declare a loss.
PROMPT = {
    "noq-fec": {"scheme": "rlc", "n": 3, "k": 2, "controller": "constant", "initial_window": 32},
    "rquic": {"scheme": "xor", "code_rate": 2 / 3},
}
# One for 63 packets, of which 32 are in the first flight: what that lost is sent again before it comes.
TARDY = {
    "noq-fec": {"scheme": "xor", "n": 64, "k": 63, "controller": "constant", "initial_window": 32},
    "rquic": {"scheme": "xor", "code_rate": 63 / 64},
}
OFF = {"noq-fec": {"scheme": "none", "initial_window": 32}, "rquic": {"scheme": "none"}}
FEC = ("packets_recovered", "recovered_spurious", "recovered_in_time", "recovered_late", "repair_useless")
# Datagrams from the server that are in its first flight of content, whatever the handshake took.
FIRST_FLIGHT = range(8, 26)
Metrics = dict[str, dict[str, float]]
Play = Callable[[str, dict[str, Any], Sequence[Sequence[int]]], list[Metrics]]


@pytest.fixture
def play(endpoints_of: Callable[[str], Any], identity: dict[str, str], tmp_path: Path) -> Play:
    """The metrics of both ends of one download for each list of datagrams from the server that are lost:
    300 kB over 10 Mbps with an RTT of 100 ms."""

    def play(name: str, options: dict[str, Any], lists: Sequence[Sequence[int]]) -> list[Metrics]:
        endpoints_of(name)
        tasks, deep = Tasks(name, identity, tmp_path), {"queue_packets": 1000}
        with Simulator(name) as simulator:
            answers = [
                simulator.answer(
                    tasks(download(300_000), owd_ms=50, down=Pattern(tuple(lost)), queue=deep, **options)
                )
                for lost in lists
            ]
        assert [exits(answer)["client"] for answer in answers] == [0] * len(lists)
        return [{end: metrics(answer, end) for end in ("client", "server")} for answer in answers]

    return play


def _fec(client: dict[str, float]) -> tuple[float, ...]:
    return tuple(client[name] for name in FEC)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_packet_that_is_rebuilt_at_once_is_in_time_and_was_never_lost(name: str, play: Play) -> None:
    unharmed, *harmed = play(name, PROMPT[name], [[], *([n] for n in FIRST_FLIGHT)])
    repair = 0
    for trial in harmed:
        client, server = trial["client"], trial["server"]
        # A datagram is a source packet or a repair symbol, and there is one such for two of those.
        was_source = client["packets_recovered"] == 1
        repair += not was_source
        useless = client["repair_received"] - was_source
        assert _fec(client) == (was_source, 0, was_source, 0, useless)
        assert (server["packets_lost"], server["spurious_losses"]) == (0, 0)
        assert server["losses_declared"] <= 1
        # Recovered packets count as received, and repair packets don't count.
        assert client["packets_received"] == unharmed["client"]["packets_received"]
    assert repair == pytest.approx(len(FIRST_FLIGHT) / 3, abs=1)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_a_packet_that_is_rebuilt_when_it_was_sent_again_is_late_and_its_loss_spurious(
    name: str, play: Play
) -> None:
    *early, last = play(name, TARDY[name], [[n] for n in (*range(8, 21), 25)])
    for trial in early:
        client, server = trial["client"], trial["server"]
        assert _fec(client) == (1, 0, 0, 1, client["repair_received"] - 1)
        assert (server["packets_lost"], server["losses_declared"]) == (1, 1)
    # Not so long ago that QUIC has forgotten what it declared.
    server = last["server"]
    assert last["client"]["packets_recovered"] == 1
    assert (server["packets_lost"], server["losses_declared"], server["spurious_losses"]) == (1, 1, 1)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_what_is_not_rebuilt_before_its_loss_is_declared_is_lost(name: str, play: Play) -> None:
    pairs = [[n, n + 1, n + 2] for n in FIRST_FLIGHT]
    for lost, trial in zip(pairs, play(name, PROMPT[name], pairs), strict=True):
        client, server = trial["client"], trial["server"]
        # Of three in a row two are source packets, and one is a repair symbol of some of them.
        rebuilt, not_rebuilt = (
            client["packets_recovered"],
            server["packets_lost"] - server["spurious_losses"],
        )
        assert rebuilt + not_rebuilt == 2, lost
        assert rebuilt == client["recovered_in_time"] + client["recovered_late"]


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_without_losses_fec_sends_as_many_packets_as_without_fec(name: str, play: Play) -> None:
    (off,), (on,) = play(name, OFF[name], [[]]), play(name, TARDY[name], [[]])
    for end in ("client", "server"):
        assert (off[end]["losses_declared"], on[end]["losses_declared"]) == (0, 0)
        # Source packets of noq-fec carry up to 24 of 1252 bytes less, and its repair symbols have ACKs.
        more = 0 if name == "rquic" else 5
        assert 0 <= on[end]["packets_sent"] - off[end]["packets_sent"] <= more
        assert 0 <= on[end]["packets_received"] - off[end]["packets_received"] <= more
    assert on["client"]["handshake_s"] == pytest.approx(off["client"]["handshake_s"], abs=1e-4)


EARLY = [10, 14, 18]  # of the first flight, so that a policy knows of losses
LAST = 250  # the last packet with content, after these three were sent again


def test_fec_that_is_never_used_takes_no_time_and_no_packet(play: Play) -> None:
    never_used = OFF["noq-fec"] | {"scheme": "rlc", "controller": "null"}
    without, unused = (play("noq-fec", options, [[], EARLY]) for options in (OFF["noq-fec"], never_used))
    for off, null in zip(without, unused, strict=True):
        for count in ("packets_sent", "source_sent", "repair_sent"):
            assert null["server"][count] == off["server"][count], count
        assert null["client"]["dct_s"] == off["client"]["dct_s"]


def test_protection_alone_sends_source_symbols_and_no_repair(play: Play) -> None:
    protected = OFF["noq-fec"] | {"scheme": "rlc", "controller": "protect-only"}
    (without,), (alone,) = (play("noq-fec", options, [EARLY]) for options in (OFF["noq-fec"], protected))
    sent = alone["server"]
    assert sent["repair_sent"] == 0 and alone["client"]["packets_recovered"] == 0
    # All but the handshake and ACKs, each with up to 24 of 1252 bytes less.
    assert 0.9 * sent["packets_sent"] < sent["source_sent"] <= sent["packets_sent"]
    more = sent["packets_sent"] / without["server"]["packets_sent"]
    assert 1 < more < 1.03
    assert alone["client"]["dct_s"] > without["client"]["dct_s"]


def test_safe_repairs_the_end_where_losses_are_known_and_is_silent_elsewhere(play: Play) -> None:
    safe = OFF["noq-fec"] | {"scheme": "rlc", "controller": "safe"}
    clean, lossy, repaired = play("noq-fec", safe, [[], EARLY, [*EARLY, LAST]])
    assert clean["server"]["repair_sent"] == 0
    assert 0 < lossy["server"]["repair_sent"] < 0.03 * lossy["server"]["packets_sent"]
    assert lossy["server"]["source_sent"] * 1200 < 75_000, "only the end is protected"
    (without,) = play("noq-fec", OFF["noq-fec"], [[*EARLY, LAST]])
    assert repaired["client"]["packets_recovered"] == 1
    assert without["client"]["dct_s"] - repaired["client"]["dct_s"] > 0.1, "a round trip is spared"
