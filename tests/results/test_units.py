"""Values stand with their units, and no digit is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fecbench.results.metrics.units import axis_label, change, quantity, size, unit_of

UNITS: list[tuple[str, float, str]] = [
    ("loss.p", 0.021, "2.1 %"),
    ("internet.loss.down.p", 0.021, "2.1 %"),
    ("option.p", 0.021, "0.021"),
    ("size_bytes", 50_000, "50 kB"),
    ("bandwidth_mbps", 2.5, "2.5 Mbit/s"),
    ("internet.up.owd_ms", 20, "20 ms"),
    ("queue_bdp", 1.5, "1.5 BDP"),
    ("streams", 3, "3"),
]


def test_a_quantity_has_the_unit_that_its_name_ends_with() -> None:
    for name, value, text in UNITS:
        assert quantity(name, value) == text


def test_the_label_of_an_axis_has_the_unit_apart() -> None:
    for name, label in (
        ("owd_ms", "owd (ms)"),
        ("size_bytes", "size (bytes)"),
        ("loss.p", "loss.p"),
        ("ms", "ms"),
    ):
        assert axis_label(name) == label


def test_the_unit_of_a_name_stands_behind_its_last_underscore() -> None:
    for name, unit in (("owd_ms", "ms"), ("queue_packets", "packets"), ("ms", "")):
        assert unit_of(name) == unit


def test_a_change_that_rounds_to_0_has_the_sign_of_0() -> None:
    for share, text in ((-0.00001, "+0.00"), (0.0, "+0.00"), (-0.0001, "-0.01"), (float("-inf"), "-∞")):
        assert change(share) == f"{text} %"
        assert change(share, points=True) == f"{text} points"
    assert change(float("nan")) == "-"


@given(size_bytes=st.integers(0, 10**12))
@settings(max_examples=300)
def test_sizes_are_shown_without_loss(size_bytes: int) -> None:
    number, unit = size(size_bytes).split()
    assert round(float(number) * {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}[unit]) == size_bytes
