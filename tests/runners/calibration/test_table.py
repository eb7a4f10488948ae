"""The summary of a calibration's table."""

from fecbench.runners.calibration.table import Measurement, Table


def line(value: float, bound: float | None, name: str = "delay error") -> Measurement:
    return Measurement(name=name, value=value, bound=bound, unit="µs")


def test_a_value_is_good_up_to_its_bound() -> None:
    for value, bound, good in ((1.0, 1.0, True), (1.1, 1.0, False), (0.0, 0.0, True), (1e9, None, True)):
        assert line(value, bound).good is good


def test_a_table_is_good_when_no_bound_of_it_is_broken() -> None:
    bad = line(3, 2, "rate error")
    lines = [line(1, 2), bad, line(9, None)]
    table = Table(kind="full", at="today", backend="wire", real_time=True, measurements=lines)
    assert not table.good
    assert table.broken() == [bad]
    assert table.model_copy(update={"measurements": [line(1, 2)]}).good


def test_a_line_is_one_sentence_for_a_person() -> None:
    assert str(line(912.34, 300)) == "delay error is 912.3 µs, the bound is 300"
    assert str(line(5.04, None)) == "delay error is 5.04 µs"
