"""Recordings of links by other tools: all forms of one content give one trace; what has no place is told."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.topologies import link_traces
from fecbench.topologies.link import TopologyError
from fecbench.topologies.link_formats.lines import Imported
from fecbench.topologies.trace import MOST_BPS


def of_text(tmp_path: Path, form: str, text: str, **options: Any) -> Imported:
    path = tmp_path / "theirs"
    path.write_text(text)
    return link_traces.read_other(form, path, **options)


def columns(imported: Imported) -> dict[str, list[int]]:
    return {name: column.tolist() for name, column in imported.trace.columns.items()}


def refusal(tmp_path: Path, form: str, text: str, **options: Any) -> str:
    with pytest.raises(TopologyError) as error:
        of_text(tmp_path, form, text, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# TheaterQ

SIMPLE = "1000000,20000000,10000000,0,0\n500000,30000000,5000000,0,0\n"
EXTENDED = "1000000,20000000,0,10000000,0,0,0,0,1,1\n500000,30000000,0,5000000,0,0,0,0,1,1\n"
HEADING = "KEEP,LATENCY,RATE,LOSS,LIMIT\n"
EXTENDED_HEADING = "KEEP,LATENCY,JITTER,RATE,LOSS,LIMIT,DUP_PROB,DUP_DELAY,ROUTE_ID,QUEUE_ID\n"
SAME = {
    "simple": SIMPLE,
    "three columns": "1000000,20000000,10000000\n500000,30000000,5000000\n",
    "with a heading": HEADING + SIMPLE,
    "with its README's heading": "<KEEP>,<LATENCY>,<RATE>,<LOSS>,<LIMIT>\n" + SIMPLE,
    "with comments": "# KEEP,LATENCY,RATE,LOSS,LIMIT\n# more\n"
    + SIMPLE.replace("\n5", "\n; a handover, say\n\n5"),
    "extended": EXTENDED,
    "extended with a heading": EXTENDED_HEADING + EXTENDED,
    "with blanks": SIMPLE.replace(",", ", "),
}


@pytest.mark.parametrize("form", SAME)
def test_both_forms_of_theaterq_give_one_trace(tmp_path: Path, form: str) -> None:
    imported = of_text(tmp_path, "theaterq", SAME[form])
    assert columns(imported) == {
        "keep_us": [1_000_000, 500_000],
        "rate_bps": [10_000_000, 5_000_000],
        "owd_us": [20_000, 30_000],
    }
    assert imported.notes == ()


def test_a_rate_of_minus_one_is_no_limit(tmp_path: Path) -> None:
    imported = of_text(tmp_path, "theaterq", "1000,2000,-1,0,0\n1000,2000,-1,0,0\n")
    assert columns(imported) == {"keep_us": [1000, 1000], "owd_us": [2, 2]}
    assert imported.notes == ("2 of 2 steps have no limit (RATE -1): the design's rate holds.",)
    imported = of_text(tmp_path, "theaterq", "1000,2000,-1,0,0\n1000,2000,7,0,0\n")
    assert columns(imported)["rate_bps"] == [MOST_BPS, 7]
    assert imported.notes == ("1 of 2 steps have no limit (RATE -1): 100 Gbit/s stand for it.",)


def test_losses_and_what_else_a_trace_has_no_place_for_are_told(tmp_path: Path) -> None:
    imported = of_text(tmp_path, "theaterq", "1000,2000,7,429496730,0\n1000,2000,7,4294967295,0\n")
    assert columns(imported)["rate_bps"] == [7, 0]
    assert imported.notes[0] == "LOSS of 100 % in 1 of 2 steps: they carry nothing."
    assert imported.notes[1].startswith("LOSS of 0 to 10 % (5 % in the mean) is left out")
    imported = of_text(tmp_path, "theaterq", "1000,2000,7,42949673,0\n3000,2000,7,42949673,0\n")
    assert 'write loss.model = "uniform" and loss.p = 0.01' in imported.notes[0]
    imported = of_text(tmp_path, "theaterq", "1000,2000,500,7,0,100,9,0,1,1\n")
    assert [note.split()[0] for note in imported.notes] == ["LIMIT", "JITTER", "DUP_PROB"]


THEATERQ = {
    "another heading": ("time,rate,delay\n1,2,3\n", "line 1: 'time,rate,delay': must be KEEP,LATENCY,RATE"),
    "a heading in another order": ("KEEP,RATE,LATENCY\n1,2,3\n", "line 1: 'KEEP,RATE,LATENCY': must be"),
    "the other form's heading": (EXTENDED_HEADING + SIMPLE, "line 2: has 5 columns; the heading has 10"),
    "columns of neither form": (
        "1,2,3,4,5,6\n",
        "line 1: has 6 columns: must have 5 (SIMPLE) or 10 (EXTENDED)",
    ),
    "columns that change": ("1,2,3,0,0\n1,2,3\n", "line 2: has 3 columns; line 1 has 5"),
    "a loss above all": ("1,2,3,4294967296,0\n", "line 1: LOSS = 4.29497e+09: must be 0 to"),
    "a rate below none": ("1,2,-2,0,0\n", "line 1: RATE = -2: must be -1 to"),
    "comments alone": ("# a\n# b\n", "none of its lines is an entry"),
    "no number": ("1,2,x,0,0\n", "line 1: 'x' is no number"),
    "a column without a value": ("1,2,,500,9\n", "line 1: '' is no number"),
    "another unit": ("1,2.5,3,0,0\n", "line 1 = '2.5': must be a whole number"),
    "digits in groups": ("1,2_000,3,0,0\n", "line 1: '2_000' is no number"),
}


@pytest.mark.parametrize("what", THEATERQ)
def test_what_is_no_trace_of_theaterq_is_refused(tmp_path: Path, what: str) -> None:
    text, why = THEATERQ[what]
    assert why in refusal(tmp_path, "theaterq", text)


# irtt

BEGIN_NS = 1_700_000_000_000_000_000
DELAYS_MS = [(40, 20), None, (42, 20), None, (44, 20)]
"""Delays of each packet, every 10 ms: up and down; None: lost."""


def trip(number: int, delays: tuple[float, float] | None, lost: str = "true_down") -> dict[str, Any]:
    at_ns = {"wall": BEGIN_NS + 10_000_000 * number, "monotonic": 10_000_000 * number}
    columns = {}
    if delays is not None:
        up, down = (round(1e6 * delay) for delay in delays)
        columns = {"receive": down, "rtt": up + down, "send": up}
    return {
        "seqno": number,
        "lost": "false" if delays else lost,
        "timestamps": {"client": {"receive": {}, "send": at_ns}, "server": {"receive": {}, "send": {}}},
        "delay": columns,
        "ipdv": {},
    }


def as_json(delays: list[tuple[float, float] | None], **trips: Any) -> str:
    written = [trip(number, columns, **trips) for number, columns in enumerate(delays)]
    return json.dumps({"version": {"irtt": "0.9.1"}, "stats": {}, "round_trips": written}, indent=1)


def as_csv(delays: list[tuple[float, float] | None], units: float, lost: str) -> str:
    """Return a table of LENS: for a lost packet, one column is −1 and others are 0, or all are −1."""
    lines = ["timestamp,rtt,uplink,downlink"]
    for number, columns in enumerate(delays):
        at = (
            (BEGIN_NS + 10_000_000 * number) * round(units) // 10**9
            if units > 1
            else f"{17e8 + number / 100:.2f}"
        )
        rest = lost if columns is None else f"{sum(columns)},{columns[0]},{columns[1]}"
        lines.append(f"{at},{rest}")
    return "\n".join(lines)


IRTT = {
    "JSON": as_json(DELAYS_MS),
    "JSON, lost on the way up": as_json(DELAYS_MS, lost="true_up"),
    "JSON, lost anywhere": as_json(DELAYS_MS, lost="true"),
    **{
        f"CSV in {name}, {lost}": as_csv(DELAYS_MS, units, lost)
        for name, units in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
        for lost in ("-1,-1,-1", "0,0,-1", "-1,0,0", "0,-1,0", "55,-1,20", "55,20,-1")
    },
}
RIGHT_MS = {"rtt": [30, 30, 31, 31, 32], "uplink": [40, 40, 42, 42, 44], "downlink": [20] * 5}


@pytest.mark.parametrize("form", IRTT)
@pytest.mark.parametrize("column", RIGHT_MS)
def test_every_form_of_irtt_gives_one_trace(tmp_path: Path, form: str, column: str) -> None:
    imported = of_text(tmp_path, "irtt", IRTT[form], column=column)
    assert columns(imported) == {"keep_us": [10_000] * 5, "owd_us": [1000 * ms for ms in RIGHT_MS[column]]}
    assert imported.notes[0].startswith("2 of 5 packets were lost")


@pytest.mark.parametrize("set_by_s", [-3600, 0.5])
def test_a_clock_that_is_set_while_irtt_runs_changes_no_step(tmp_path: Path, set_by_s: float) -> None:
    recording = json.loads(as_json(DELAYS_MS))
    for number, one in enumerate(recording["round_trips"]):
        end = one["timestamps"]["client"]["send"]
        end["monotonic"] = 7_000 + 10_000_000 * number
        end["wall"] += round(1e9 * set_by_s) * (number >= 3)
    assert columns(of_text(tmp_path, "irtt", json.dumps(recording)))["keep_us"] == [10_000] * 5


def test_a_separator_beside_a_number_is_a_blank(tmp_path: Path) -> None:
    imported = of_text(tmp_path, "irtt", "timestamp,rtt\n0\x1f,60\n1,61\n")
    assert columns(imported)["owd_us"] == [30_000, 30_500]


def test_irtt_packs_what_it_writes(tmp_path: Path) -> None:
    (tmp_path / "d.json.gz").write_bytes(gzip.compress(as_json(DELAYS_MS).encode()))
    assert link_traces.imported("irtt", tmp_path / "d.json.gz").owd_us.tolist()[-1] == 32_000


@pytest.mark.parametrize(
    "text", [as_json([None, *DELAYS_MS[::2]]), as_csv([None, *DELAYS_MS[::2]], 1e9, "0,0,-1")]
)
def test_before_its_first_answer_a_recording_has_the_delay_of_that(tmp_path: Path, text: str) -> None:
    assert columns(of_text(tmp_path, "irtt", text))["owd_us"] == [30_000, 30_000, 31_000, 32_000]


NO_STAMPS = as_json(DELAYS_MS).replace('"send": 4', '"sent": 4')
BAD_IRTT = {
    "no answer": (as_json([None, None]), "has no answer: all of its 2 packets were lost"),
    "no recording": ('{"a": 1}', "is no recording of irtt: it has no round_trips"),
    "half a file": (as_json(DELAYS_MS)[:300], "is no whole JSON"),
    "an empty trip": ('{"round_trips": [{}]}', "round trip 0: must have lost, delay and timestamps"),
    "clocks apart": (as_json([(-5, 60)]), "round trip 0: uplink = -5: clocks differ"),
    "a server without timestamps": (NO_STAMPS, "round trip 0: has no delay 'send'"),
    "no such column": (as_json(DELAYS_MS), "column 'jitter': must be one of rtt, uplink, downlink", "jitter"),
    "ms that are no whole numbers": ("timestamp,uplink\n1700000000000.5,1\n", "must be a time in s"),
    "a column twice": ("timestamp,uplink,uplink\n5,1,2\n", "'uplink': is the name of several columns"),
    "times that stand still": ("timestamp,uplink\n5,1\n5,2\n", "line 3: its time must be later"),
}


@pytest.mark.parametrize("what", BAD_IRTT)
def test_what_is_no_recording_of_irtt_is_refused(tmp_path: Path, what: str) -> None:
    text, why, *column = BAD_IRTT[what]
    assert why in refusal(tmp_path, "irtt", text, column=column[0] if column else "uplink")


# Rates


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 9000)), min_size=2, max_size=20))
def test_rates_before_their_time_are_those_after_the_time_before(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    """Shifting each rate up a line gives the same trace, but for the length of the last step."""
    rows[-1] = (rows[-1][0], rows[-1][1] + 1)
    times = [sum(step for step, _ in rows[: place + 1]) for place in range(len(rows))]
    mbps = [rate / 8 for _, rate in rows]
    folder = tmp_path_factory.getbasetemp()
    before = "".join(f"{at} {rate}\n" for at, rate in zip(times, mbps, strict=True))
    after = "".join(f"{at} {rate}\n" for at, rate in zip(times, [*mbps[1:], 0], strict=True))
    shifted = columns(of_text(folder, "rates", after))
    hits = columns(of_text(folder, "rates", before, holds="before"))
    assert hits == {name: column[:-1] for name, column in shifted.items()}


def test_rates_as_pensieve_reads_them(tmp_path: Path) -> None:
    imported = of_text(tmp_path, "rates", "0.5\t4\n1.0\t8\n31.0\t2\n32.0\t6\n", holds="before")
    assert columns(imported) == {
        "keep_us": [500_000, 30_000_000, 1_000_000],
        "rate_bps": [8_000_000, 2_000_000, 6_000_000],
    }


GHENT = "1453121790686 190 51.0384 3.7319 2010240 1005\n1453121791691 1195 51.0384 3.7319 2457600 1005\n"
RATES = {
    "more columns": (GHENT, "line 1: has 6 columns: must have two, a time in s and a rate in Mbit/s"),
    "one column": ("1\n2\n", "line 1: has 1 column"),
    "a line with three": ("# s Mbit/s\n0 1\n1 2 3\n", "line 3: has 3 columns"),
    "ms since 1970": ("1700000000000 5\n", "line 1: '1700000000000': must be a time in s"),
    "comments alone": ("# s Mbit/s\n", "is empty"),
}


@pytest.mark.parametrize("what", RATES)
def test_what_is_no_list_of_rates_is_refused(tmp_path: Path, what: str) -> None:
    text, why = RATES[what]
    assert why in refusal(tmp_path, "rates", text)


def test_one_rate_before_its_time_has_no_length(tmp_path: Path) -> None:
    assert "has one time" in refusal(tmp_path, "rates", "5 1\n", holds="before")
