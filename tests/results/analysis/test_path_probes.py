"""Probes as recordings: who reads them finds the same round trips and losses again."""

from pathlib import Path

from fecbench.dropper import recordings
from fecbench.results.analysis.path_probes import PathProbe, as_irtt, as_losses
from fecbench.topologies.link_formats import irtt

FATES = "..u..dd.u" * 5
PROBES = [
    PathProbe(1.8e9 + 0.02 * number, 20.5 + number if fate == "." else None, fate == "u", fate == "d")
    for number, fate in enumerate(FATES)
]


def test_a_reader_of_irtt_finds_the_same_round_trips() -> None:
    answers = irtt.answers(as_irtt(PROBES).encode())
    assert [rtt_ms for _, rtt_ms in answers] == [probe.rtt_ms for probe in PROBES]
    assert all(abs(at_s - 0.02 * number) < 1e-6 for number, (at_s, _) in enumerate(answers))


def test_each_direction_has_its_own_losses(tmp_path: Path) -> None:
    for direction, count, lost in (("up", len(FATES), FATES.count("u")), ("down", 35, FATES.count("d"))):
        file = tmp_path / f"{direction}.txt"
        file.write_text(as_losses(PROBES, "up" if direction == "up" else "down"))
        read = recordings.recorded(file).lost
        assert (len(read), int(sum(read))) == (count, lost)
