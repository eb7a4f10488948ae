"""The catalogue's designs of papers have the papers' numbers."""

import re
import tomllib
from pathlib import Path

import pytest

from fecbench import designs
from fecbench.designs import DesignError

CATALOG = Path(designs.__file__).parent / "catalog"
TABLE_I = {  # Networking 2019
    "bandwidth_mbps": (0.3, 10),
    "loss.p": (0.01, 0.08),
    "loss.r": (0.08, 0.5),
    "loss.k": (0.98, 1),
    "loss.h": (0, 0.1),
    "owd_ms": (100, 400),
}


def test_the_designs_of_networking_2019_have_its_ranges_sizes_and_repetitions() -> None:
    for name, factors in (
        ("networking2019-uniform", ["bandwidth_mbps", "loss.p", "owd_ms"]),
        ("networking2019-ge", list(TABLE_I)),
        ("networking2019-noloss", ["bandwidth_mbps", "owd_ms"]),
    ):
        design = designs.load(CATALOG / f"{name}.toml")
        assert {key: (factor.min, factor.max) for key, factor in design.factors.items()} == {
            key: TABLE_I[key] for key in factors
        }
        assert len(design.plan().points) == 130
        assert (design.repetitions, design.statistic) == (9, "median")
        sizes = [workload.parameters["size_bytes"] for workload in design.workloads]
        assert sizes == [1000, 10_000, 50_000, 1_000_000]


RLC = {"scheme": "rlc", "window": 20}  # Networking 2019, §IV-A, (n, k, 20) with n and k of each section


def codes(name: str) -> list[tuple[object, object]]:
    """(n, k) of each of the design's variants with RLC."""
    variants = designs.load(CATALOG / f"{name}.toml").variants
    with_rlc = [each.options for each in variants if each.options.items() >= RLC.items()]
    return [(options["n"], options["k"]) for options in with_rlc]


CODES: list[tuple[str, list[tuple[int, int]]]] = [
    ("uniform", [(3, 2)]),
    ("ge", [(3, 2)]),
    ("da2gc", [(3, 2)]),
    ("mss", [(3, 2)]),
    ("noloss", [(3, 2), (5, 4)]),
    ("fairness", [(7, 6), (7, 6)]),
]


def test_the_designs_of_networking_2019_have_its_codes() -> None:
    for name, rlc in CODES:
        assert codes(f"networking2019-{name}") == rlc


def test_the_networks_for_aeroplanes_are_those_of_networking_2019() -> None:
    for name, rtt_ms, mbps, loss in (
        ("da2gc", 262, 0.468, 0.033),
        ("mss", 761, 1.89, 0.06),
        ("fairness", 761, 1.89, None),
    ):
        design = designs.load(CATALOG / f"networking2019-{name}.toml")
        networks = {
            (2 * point["owd_ms"], point["bandwidth_mbps"], point.get("loss.p"))
            for point in design.plan().points
        }
        assert networks == {(rtt_ms, mbps, loss)}
        assert design.repetitions == 50


def test_in_networking_2019_every_arm_competes_with_every_background_for_10_mb() -> None:
    design = designs.load(CATALOG / "networking2019-fairness.toml")
    backgrounds = [workload.parameters["background"] for workload in design.workloads]
    assert backgrounds == [variant.label for variant in design.variants]
    assert {workload.parameters["size_bytes"] for workload in design.workloads} == {10_000_000}
    assert [variant.options.get("recovered") for variant in design.variants] == [None, "notify", "mask"]
    assert [point["queue_bdp"] for point in design.plan().points] == [0.3, 1.5]


def test_a_short_form_of_networking_2019_has_less_of_the_same() -> None:
    for kind in ("uniform", "ge", "noloss", "fairness"):
        whole, short = (
            designs.load(CATALOG / f"networking2019-{kind}{length}.toml") for length in ("", "-short")
        )
        assert all(variant in whole.variants for variant in short.variants)
        assert (short.factors, short.constants) == (whole.factors, whole.constants)
        assert (short.workloads, short.topology) == (whole.workloads, whole.topology)
        assert short.repetitions < whole.repetitions


TABLE_5_1 = {  # Michel's thesis, 2018
    "loss.p": (0, 0.01),
    "loss.r": (0.025, 0.5),
    "loss.k": (0.97, 1),
    "loss.h": (0, 0.4),
    "owd_ms": (0, 100),
}
UNIFORM = {"loss.p": (0, 0.03), "owd_ms": (0, 100)}
TABLE_5_2 = {"loss.p": 0.005, "loss.r": 0.25, "loss.k": 0.98, "loss.h": 0.05}


def test_the_designs_of_the_thesis_have_its_ranges_and_its_traffic() -> None:
    for length in ("", "-short"):
        for kind, ranges in (("uniform", UNIFORM), ("ge", TABLE_5_1), ("low-desync", UNIFORM)):
            design = designs.load(CATALOG / f"thesis2018-{kind}{length}.toml")
            assert {name: (factor.min, factor.max) for name, factor in design.factors.items()} == ranges
            assert (design.repetitions, design.statistic) == (3, "median")
            for workload in design.workloads:
                # Whatever is not given is the thesis' traffic.
                assert (workload.name, set(workload.parameters)) == ("messages", {"delivery", "playout_ms"})


def test_the_design_over_the_delay_has_the_other_parameters_of_table_5_2() -> None:
    for length in ("", "-short"):
        design = designs.load(CATALOG / f"thesis2018-delay{length}.toml")
        assert {name: design.constants[name] for name in TABLE_5_2} == TABLE_5_2
        delays = [point["owd_ms"] for point in design.plan().points]
        assert (min(delays), max(delays)) == (0, 200)
        assert delays == sorted(delays)


def test_in_the_designs_of_the_thesis_nothing_paces_and_blocks_span_messages() -> None:
    for length in ("", "-short"):
        for name in ("uniform", "ge", "delay", "low-desync"):
            design = designs.load(CATALOG / f"thesis2018-{name}{length}.toml")
            assert design.constants["option.congestion_control"] == "none"
            assert design.constants["option.flush"] == "never"
            codes = [
                tuple(variant.options.get(key) for key in ("scheme", "n", "k", "window", "interleave"))
                for variant in design.variants
            ]
            known = {
                ("none", None, None, None, None),
                ("rs", 30, 20, None, None),
                ("rs", 6, 4, None, None),  # of low-desync, and no code of the thesis
                ("xor", 3, 2, None, 10),
                ("rlc", 3, 2, 20, None),
            }
            assert set(codes) <= known
            # What low-desync leaves out is in uniform, of the same points; the short delay has Fig. 5.10.
            if name + length not in ("low-desync", "low-desync-short", "delay-short"):
                assert set(codes) == known - {("rs", 6, 4, None, None)}
                deliveries = [workload.parameters["delivery"] for workload in design.workloads]
                assert deliveries == ["datagram", "deadline", "reliable"]
            assert {variant.implementation for variant in design.variants} == {"udp", "noq-fec"}


def test_a_small_buffer_is_asked_for_at_the_points_and_with_the_seed_of_uniform_losses() -> None:
    for length in ("", "-short"):
        small, uniform = (
            designs.load(CATALOG / f"thesis2018-{kind}{length}.toml") for kind in ("low-desync", "uniform")
        )
        assert (small.seed, small.plan().points) == (uniform.seed, uniform.plan().points)


OF_PATHS = {  # Table 5.1 of Michel's thesis; the Markov losses of Section 5.9 have k = 1 and h = 0
    "homogeneous": ["loss.p", "loss.r", "owd_ms"],
    "losses": ["path1.loss.p", "path1.loss.r", "path2.loss.p", "path2.loss.r", "owd_ms"],
    "heterogeneous": [f"path{path}.{name}" for path in (1, 2) for name in ("loss.p", "loss.r", "owd_ms")],
}


def test_the_designs_of_two_paths_have_the_ranges_and_the_arms_of_the_thesis() -> None:
    for kind in OF_PATHS:
        whole, short, more = (
            designs.load(CATALOG / f"thesis2018-multipath-{kind}{length}.toml")
            for length in ("", "-short", "-more")
        )
        assert {name: (factor.min, factor.max) for name, factor in whole.factors.items()} == {
            name: TABLE_5_1[re.sub(r"^path\d\.", "", name)] for name in OF_PATHS[kind]
        }
        options = [whole.constants[f"option.{name}"] for name in ("congestion_control", "flush")]
        assert options == ["none", "never"]
        arms = [
            (variant.options["scheme"], variant.options.get("scheduler"), variant.options["paths"])
            for variant in whole.variants
        ]
        of_paths = [(None, 1), ("round-robin", 2), ("highrb", 2)]
        assert arms == [(scheme, *paths) for scheme in ("none", "rs", "rlc") for paths in of_paths]
        for other in (short, more):
            assert (other.factors, other.constants) == (whole.factors, whole.constants)
            assert (other.workloads, other.topology) == (whole.workloads, whole.topology)
            assert (
                (other.repetitions, other.statistic) == (whole.repetitions, whole.statistic) == (3, "median")
            )
        assert short.variants == whole.variants
        assert [variant.options for variant in more.variants] == [
            variant.options for variant in whole.variants if variant.options["scheme"] == "rs"
        ]
        points = [len(design.plan().points) for design in (short, whole, more)]
        assert points == [24, 130, 1024]


NETWORKS = {"Wi-Fi": (20, 25), "cellular": (10, 100), "satellite": (1.5, 400)}  # rQUIC §VI-A: Mbps, RTT in ms
MIB = {"Wi-Fi": 20, "cellular": 20, "satellite": 5}  # §VI-B


def test_the_designs_of_rquic_have_its_networks_and_losses() -> None:
    for kind in ("bulk", "page", "bto"):
        for length in ("", "-short"):
            design = designs.load(CATALOG / f"rquic2021-{kind}{length}.toml")
            points = design.plan().points
            for point in points:
                network = str(point["network"])
                assert (point["bandwidth_mbps"], 2 * point["owd_ms"]) == NETWORKS[network]
                if kind != "page":
                    is_quarter = length and point.get("loss.p") != 0
                    assert point["workload.size_bytes"] == MIB[network] * 2**20 / (4 if is_quarter else 1)
            assert {point["network"] for point in points} == set(NETWORKS)
            if kind == "bto":
                assert design.constants["loss.p"] == 0.03
            else:
                losses = [0, 0.01, 0.02, 0.03, 0.05]
                assert [point["loss.p"] for point in points] == [loss for loss in losses for _ in NETWORKS]


def test_the_buffer_timeouts_go_from_5_ms_to_12_round_trips_of_each_network() -> None:
    for length in ("", "-short"):
        points = designs.load(CATALOG / f"rquic2021-bto{length}.toml").plan().points
        for network, (_, rtt_ms) in NETWORKS.items():
            timeouts = [point["option.bto_ms"] for point in points if point["network"] == network]
            assert (min(timeouts), max(timeouts)) == (5, 12 * rtt_ms)
            assert rtt_ms in timeouts, "the paper's safe choice"


def test_a_short_form_differs_in_its_numbers_only() -> None:
    for kind in ("bulk", "page", "bto"):
        whole, short = (designs.load(CATALOG / f"rquic2021-{kind}{length}.toml") for length in ("", "-short"))
        assert short.variants == whole.variants
        assert short.constants == whole.constants
        assert short.workloads == whole.workloads
        assert short.repetitions < whole.repetitions


def test_a_table_that_makes_no_design_is_refused_as_in_a_file() -> None:
    design = designs.load(designs.catalogue()["smoke"])
    with pytest.raises(DesignError, match="repetitions = 0: must be greater than or equal to 1"):
        designs.rewritten(design, repetitions=0)


def test_a_path_dies_before_any_download_can_have_ended() -> None:
    """No variant is faster than all paths together, so all meet the outage."""
    for name in ("multipath-handover", "multipath-handover-mptcp"):
        design = designs.load(designs.catalogue()[name])
        text = tomllib.loads(designs.catalogue()[name].read_text())
        latest_s = text["factors"]["path1"]["outage_from_s"]["max"]
        paths_mbps = text["constants"]["option"]["paths"] * text["constants"]["bandwidth_mbps"]
        for workload in design.workloads:
            assert workload.parameters["size_bytes"] * 8e-6 / paths_mbps > 1.1 * latest_s
