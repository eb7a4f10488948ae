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


def load(name: str) -> designs.Design:
    return designs.load(CATALOG / f"{name}.toml")


def ranges_of(design: designs.Design) -> dict[str, tuple[float, float]]:
    return {name: (factor.min, factor.max) for name, factor in design.factors.items()}


def test_the_designs_of_networking_2019_have_its_ranges_sizes_and_repetitions() -> None:
    for kind, factors in (
        ("uniform", ["bandwidth_mbps", "loss.p", "owd_ms"]),
        ("ge", list(TABLE_I)),
        ("noloss", ["bandwidth_mbps", "owd_ms"]),
    ):
        design = load(f"networking2019-{kind}")
        assert ranges_of(design) == {key: TABLE_I[key] for key in factors}
        assert len(design.plan().points) == 130
        assert (design.repetitions, design.statistic) == (9, "median")
        sizes = [workload.parameters["size_bytes"] for workload in design.workloads]
        assert sizes == [1000, 10_000, 50_000, 1_000_000]


# Networking 2019, §IV-A: (n, k) of the variants with RLC (n, k, 20).
CODES = {
    **{kind: [(3, 2)] for kind in ("uniform", "ge", "da2gc", "mss")},
    "noloss": [(3, 2), (5, 4)],
    "fairness": [(7, 6), (7, 6)],
}
AEROPLANES = {"da2gc": (262, 0.468, 0.033), "mss": (761, 1.89, 0.06), "fairness": (761, 1.89, None)}
"""RTT, bandwidth and loss rate."""


def test_the_designs_of_networking_2019_have_its_codes_and_the_networks_for_aeroplanes() -> None:
    for kind, codes in CODES.items():
        options = [variant.options for variant in load(f"networking2019-{kind}").variants]
        with_rlc = [entry for entry in options if entry.items() >= {"scheme": "rlc", "window": 20}.items()]
        assert [(entry["n"], entry["k"]) for entry in with_rlc] == codes
    for kind, network in AEROPLANES.items():
        design = load(f"networking2019-{kind}")
        for point in design.plan().points:
            assert (2 * point["owd_ms"], point["bandwidth_mbps"], point.get("loss.p")) == network
        assert design.repetitions == 50


def test_in_networking_2019_every_arm_competes_with_every_background_for_10_mb() -> None:
    design = load("networking2019-fairness")
    backgrounds = [workload.parameters["background"] for workload in design.workloads]
    assert backgrounds == [variant.label for variant in design.variants]
    assert {workload.parameters["size_bytes"] for workload in design.workloads} == {10_000_000}
    assert [variant.options.get("recovered") for variant in design.variants] == [None, "notify", "mask"]
    assert [point["queue_bdp"] for point in design.plan().points] == [0.3, 1.5]


TABLE_5_1 = {  # Michel's thesis, 2018
    "loss.p": (0, 0.01),
    "loss.r": (0.025, 0.5),
    "loss.k": (0.97, 1),
    "loss.h": (0, 0.4),
    "owd_ms": (0, 100),
}
UNIFORM = {"loss.p": (0, 0.03), "owd_ms": (0, 100)}
TABLE_5_2 = {"loss.p": 0.005, "loss.r": 0.25, "loss.k": 0.98, "loss.h": 0.05}


def test_a_short_form_has_less_of_the_same() -> None:
    of_2019 = [f"networking2019-{kind}" for kind in ("uniform", "ge", "noloss", "fairness")]
    for name in (*of_2019, *(f"rquic2021-{kind}" for kind in ("bulk", "page", "bto"))):
        whole, short = load(name), load(f"{name}-short")
        assert all(variant in whole.variants for variant in short.variants)
        assert (short.workloads, short.topology) == (whole.workloads, whole.topology)
        assert short.constants == whole.constants
        assert short.repetitions < whole.repetitions
        if name in of_2019:
            assert short.factors == whole.factors
        else:
            assert short.variants == whole.variants


def test_the_designs_of_the_thesis_have_its_ranges_and_its_traffic() -> None:
    for length in ("", "-short"):
        for kind, ranges in (("uniform", UNIFORM), ("ge", TABLE_5_1), ("low-desync", UNIFORM)):
            design = load(f"thesis2018-{kind}{length}")
            assert ranges_of(design) == ranges
            assert (design.repetitions, design.statistic) == (3, "median")
            for workload in design.workloads:
                # Whatever is not given is the thesis' traffic.
                assert (workload.name, set(workload.parameters)) == ("messages", {"delivery", "playout_ms"})
        small, uniform = (load(f"thesis2018-{kind}{length}") for kind in ("low-desync", "uniform"))
        assert (small.seed, small.plan().points) == (uniform.seed, uniform.plan().points)


def test_the_design_over_the_delay_has_the_other_parameters_of_table_5_2() -> None:
    for length in ("", "-short"):
        design = load(f"thesis2018-delay{length}")
        assert {name: design.constants[name] for name in TABLE_5_2} == TABLE_5_2
        delays = [point["owd_ms"] for point in design.plan().points]
        assert (min(delays), max(delays)) == (0, 200)
        assert delays == sorted(delays)


def test_in_the_designs_of_the_thesis_nothing_paces_and_blocks_span_messages() -> None:
    names = {
        ("none", None, None, None, None),
        ("rs", 30, 20, None, None),
        ("rs", 6, 4, None, None),  # of low-desync, and no code of the thesis
        ("xor", 3, 2, None, 10),
        ("rlc", 3, 2, 20, None),
    }
    for name in (
        f"{kind}{end}" for end in ("", "-short") for kind in ("uniform", "ge", "delay", "low-desync")
    ):
        design = load(f"thesis2018-{name}")
        assert design.constants["option.congestion_control"] == "none"
        assert design.constants["option.flush"] == "never"
        keys = ("scheme", "n", "k", "window", "interleave")
        codes = {tuple(variant.options.get(key) for key in keys) for variant in design.variants}
        assert codes <= names
        # What low-desync leaves out is in uniform, of the same points; the short delay has Fig. 5.10.
        if name not in ("low-desync", "low-desync-short", "delay-short"):
            assert codes == names - {("rs", 6, 4, None, None)}
            deliveries = [workload.parameters["delivery"] for workload in design.workloads]
            assert deliveries == ["datagram", "deadline", "reliable"]
        assert {variant.implementation for variant in design.variants} == {"udp", "noq-fec"}


OF_PATHS = {  # Table 5.1 of Michel's thesis; the Markov losses of Section 5.9 have k = 1 and h = 0
    "homogeneous": ["loss.p", "loss.r", "owd_ms"],
    "losses": ["path1.loss.p", "path1.loss.r", "path2.loss.p", "path2.loss.r", "owd_ms"],
    "heterogeneous": [f"path{path}.{name}" for path in (1, 2) for name in ("loss.p", "loss.r", "owd_ms")],
}


def test_the_designs_of_two_paths_have_the_ranges_and_the_arms_of_the_thesis() -> None:
    of_paths = [(None, 1), ("round-robin", 2), ("highrb", 2)]
    for kind, names in OF_PATHS.items():
        whole, short, more = (load(f"thesis2018-multipath-{kind}{end}") for end in ("", "-short", "-more"))
        assert ranges_of(whole) == {name: TABLE_5_1[re.sub(r"^path\d\.", "", name)] for name in names}
        options = [whole.constants[f"option.{name}"] for name in ("congestion_control", "flush")]
        assert options == ["none", "never"]
        keys = ("scheme", "scheduler", "paths")
        arms = [tuple(variant.options.get(key) for key in keys) for variant in whole.variants]
        assert arms == [(scheme, *paths) for scheme in ("none", "rs", "rlc") for paths in of_paths]
        for other in (short, more):
            assert (other.factors, other.constants) == (whole.factors, whole.constants)
            assert (other.workloads, other.topology) == (whole.workloads, whole.topology)
        assert {(entry.repetitions, entry.statistic) for entry in (whole, short, more)} == {(3, "median")}
        assert short.variants == whole.variants
        of_rs = [variant.options for variant in whole.variants if variant.options["scheme"] == "rs"]
        assert [variant.options for variant in more.variants] == of_rs
        assert [len(design.plan().points) for design in (short, whole, more)] == [24, 130, 1024]


def test_the_designs_of_rquic_have_its_networks_losses_and_buffer_timeouts() -> None:
    for kind, length in ((kind, length) for kind in ("bulk", "page", "bto") for length in ("", "-short")):
        design = load(f"rquic2021-{kind}{length}")
        points = design.plan().points
        assert {point["network"] for point in points} == set(NETWORKS)
        for point in points:
            network = str(point["network"])
            assert (point["bandwidth_mbps"], 2 * point["owd_ms"]) == NETWORKS[network]
            if kind != "page":
                is_quarter = length and point.get("loss.p") != 0
                assert point["workload.size_bytes"] == MIB[network] * 2**20 / (4 if is_quarter else 1)
        if kind != "bto":
            losses = [0, 0.01, 0.02, 0.03, 0.05]
            assert [point["loss.p"] for point in points] == [loss for loss in losses for _ in NETWORKS]
            continue
        assert design.constants["loss.p"] == 0.03
        for network, (_, rtt_ms) in NETWORKS.items():
            timeouts = [point["option.bto_ms"] for point in points if point["network"] == network]
            assert (min(timeouts), max(timeouts)) == (5, 12 * rtt_ms)
            assert rtt_ms in timeouts, "the paper's safe choice"


NETWORKS = {"Wi-Fi": (20, 25), "cellular": (10, 100), "satellite": (1.5, 400)}  # rQUIC §VI-A: Mbps, RTT in ms
MIB = {"Wi-Fi": 20, "cellular": 20, "satellite": 5}  # §VI-B


def test_a_table_that_makes_no_design_is_refused_as_in_a_file() -> None:
    design = designs.load(designs.catalogue()["smoke"])
    with pytest.raises(DesignError, match="repetitions = 0: must be greater than or equal to 1"):
        designs.rewritten(design, repetitions=0)


def test_a_path_dies_before_any_download_can_have_ended() -> None:
    """A variant is never faster than all paths together, so all variants meet the outage."""
    for name in ("multipath-handover", "multipath-handover-mptcp"):
        design = designs.load(designs.catalogue()[name])
        text = tomllib.loads(designs.catalogue()[name].read_text())
        latest_s = text["factors"]["path1"]["outage_from_s"]["max"]
        paths_mbps = text["constants"]["option"]["paths"] * text["constants"]["bandwidth_mbps"]
        for workload in design.workloads:
            assert workload.parameters["size_bytes"] * 8e-6 / paths_mbps > 1.1 * latest_s
