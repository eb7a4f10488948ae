"""The bound on FEC that has nothing to repair."""

from bench.noq_cost import NULL, OFF, SAFE, missed, paired


def test_an_arm_is_divided_by_fec_off_of_its_own_round():
    assert paired([1.0, 20.0, 300.0], [1.0, 10.0, 100.0]) == 2


def test_at_the_bound_is_met_and_beyond_it_is_named():
    off = [100.0, 200.0, 50.0]
    at = [cost * 1.01 for cost in off]
    beyond = [cost * 1.02 for cost in off]
    assert not missed({OFF: off, NULL: off, SAFE: [cost - 1e-9 for cost in at]})
    [line] = missed({OFF: off, NULL: off, SAFE: beyond})
    assert line == "noq-fec, safe: 1.020 of the CPU time of FEC off: the bound is 1.01"
