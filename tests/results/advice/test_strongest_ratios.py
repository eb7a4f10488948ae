"""The record: made of campaigns, and as it is shipped."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.errors import BadInput
from fecbench.results.advice.__main__ import main
from fecbench.results.advice.record import CONGESTION_CONTROLS, CONTROLLERS, NETWORK, RECORD, kinds_of
from fecbench.results.advice.strongest_ratios import CAMPAIGNS, beside, campaigns_in, recorded
from fecbench.results.analysis.intervals import AVERAGED

SAFE, TAIL = CONTROLLERS
LOSSES: dict[str, dict[str, float]] = {
    "never-harms": {"loss.p": 0.01},
    "never-harms-bursts": {"loss.p": 0.002, "loss.r": 0.25},
    "never-harms-no-loss": {},
}
POINTS = 60


class Stored:
    """A campaign in which a ratio tells the network's number, the size and the pairs, in no order."""

    def __init__(
        self,
        name: str,
        losses: dict[str, float],
        *,
        sizes: tuple[int, ...] = (1000, 10_000),
        pairs: int = 20,
        arms: tuple[str, ...] = (SAFE, TAIL),
        points: int = POINTS,
    ) -> None:
        self._losses, self._sizes, self._pairs, self._points = losses, sizes, pairs, points
        workloads = [{"label": f"download-{size}", "parameters": {"size_bytes": size}} for size in sizes]
        variants = [{"label": f"{control}, {arm}"} for control in CONGESTION_CONTROLS for arm in arms]
        self.info = SimpleNamespace(name=name, workloads=workloads, variants=variants)

    def points(self) -> pd.DataFrame:
        points = range(self._points)
        return pd.DataFrame(
            {"point": points, "bandwidth_mbps": [1.0 + point for point in points]}
            | {"owd_ms": 10.0, "queue_bdp": [1 + point / 10 for point in points]}
            | {name: [base + point / 1000 for point in points] for name, base in self._losses.items()}
        )

    def intervals(self, baseline: str, variant: str) -> pd.DataFrame:
        assert baseline == f"{variant.partition(',')[0]}, no FEC"
        rows = [
            {"workload": f"download-{size}", "point": point, "ratio": size + point + self._pairs / 1000}
            | {"low": size, "high": 2.0 * size, "verdict": "gain", "pairs": self._pairs}
            for size in self._sizes
            for point in range(self._points)
        ]
        return pd.DataFrame(rows).sample(frac=1, random_state=1)


def test_a_campaign_that_ran_until_decided_gives_the_ratios_of_its_first_look() -> None:
    decided = Stored("never-harms-sizes", {"loss.p": 0.01})
    of_all, first = decided.intervals, {"averaged_ratio": 0.5, "averaged_pairs": 38}
    others = dict.fromkeys(set(AVERAGED) - set(first), 1.0)
    decided.intervals = lambda *arms: of_all(*arms).assign(  # type: ignore[method-assign]
        censored=0, timeouts=0, **first, **others
    )
    record = recorded([decided])  # type: ignore[list-item]
    assert (record["ratio"] == 0.5).all() and (record["pairs"] == 38).all()


def test_a_record_has_each_ratio_beside_its_network() -> None:
    campaigns = [Stored(name, losses) for name, losses in LOSSES.items()]
    record = recorded(campaigns)  # type: ignore[arg-type]
    assert len(record) == 3 * 2 * 2 * 2 * POINTS
    point = (record["ratio"] - record["size_bytes"]).round()
    assert (record["bandwidth_mbps"] == 1 + point).all() and (record["rtt_ms"] == 20).all()
    assert np.allclose(record["queue_bdp"], 1 + point / 10)
    assert (record["low"] == record["size_bytes"]).all() and (record["high"] == 2 * record["low"]).all()
    single, bursts, none = (record[record["campaign"] == name] for name in LOSSES)
    assert np.allclose(single["loss"], 0.01 + point[single.index] / 1000)
    p, r = (base + point[bursts.index] / 1000 for base in (0.002, 0.25))
    assert np.allclose(bursts["loss"], p / (p + r)) and np.allclose(bursts["burst"], 1 / r)
    assert (none["loss"] == 0).all()
    assert [kind for kind, _ in pd.Series(kinds_of(record)).groupby(kinds_of(record), sort=False)] == [
        *("single", "bursts", "none")
    ]


def test_of_several_ratios_of_the_same_that_of_most_pairs_is_kept_and_says_where_it_is_from() -> None:
    losses = LOSSES["never-harms"]
    weak = Stored("never-harms", losses)
    strong = Stored("never-harms-decided", losses, sizes=(10_000, 50_000), pairs=300, arms=(SAFE,))
    weakest = Stored("never-harms-sizes", losses, sizes=(10_000, 30_000), pairs=6, arms=(SAFE,))
    of_cells: list[pd.Series] = []
    for order in ([weak, strong, weakest], [weakest, strong, weak]):
        record = recorded(order)  # type: ignore[arg-type]
        assert np.allclose((record["ratio"] % 1) * 1000, record["pairs"], atol=1)
        cells = record.groupby(["controller", "size_bytes"])
        assert (cells.size() == 2 * POINTS).all()
        of_cells.append(cells["campaign"].unique().str[0])
    assert of_cells[0].equals(of_cells[1])
    assert of_cells[0].to_dict() == {
        ("safe", 1000): "never-harms",
        ("safe", 10_000): "never-harms-decided",
        ("safe", 30_000): "never-harms-sizes",
        ("safe", 50_000): "never-harms-decided",
        ("tail", 1000): "never-harms",
        ("tail", 10_000): "never-harms",
    }


def test_a_size_with_fewer_networks_than_are_asked_is_refused_in_a_line() -> None:
    with pytest.raises(BadInput, match=r"safe, 1000, single: has 40 networks: must be more than the 40"):
        recorded([Stored("never-harms", LOSSES["never-harms"], points=40)])  # type: ignore[arg-type]


@pytest.mark.parametrize("ratio", [0.0, np.inf])
def test_a_network_in_which_an_arm_did_not_get_through_is_not_left_out(ratio: float) -> None:
    campaign = Stored("never-harms", LOSSES["never-harms"])
    ratios = campaign.intervals("Cubic, no FEC", f"Cubic, {SAFE}")
    ratios.iloc[0, ratios.columns.get_loc("ratio")] = ratio
    campaign.intervals = lambda *_: ratios  # type: ignore[method-assign]
    with pytest.raises(BadInput, match="1 network has a ratio of 0 or ∞"):
        recorded([campaign])  # type: ignore[list-item]


def test_controllers_that_were_not_run_again_keep_their_rows() -> None:
    before = recorded([Stored(name, losses) for name, losses in LOSSES.items()])  # type: ignore[arg-type]
    again = [Stored(name, losses, pairs=5, arms=(SAFE,)) for name, losses in LOSSES.items()]
    record = beside(recorded(again), before)  # type: ignore[arg-type]
    cells = ["congestion_control", "controller", "size_bytes", *NETWORK, "campaign"]
    assert record[cells].equals(before[cells])
    is_safe = record["controller"] == "safe"
    assert (record["pairs"][is_safe] == 5).all() and record[~is_safe].equals(before[~is_safe])


def test_campaigns_that_were_not_run_again_keep_their_rows() -> None:
    before = recorded([Stored(name, losses) for name, losses in LOSSES.items()])  # type: ignore[arg-type]
    again = Stored("never-harms-bursts", LOSSES["never-harms-bursts"], pairs=5, arms=(SAFE,))
    record = beside(recorded([again]), before)  # type: ignore[arg-type]
    is_again = (record["campaign"] == "never-harms-bursts") & (record["controller"] == SAFE)
    assert (record["pairs"][is_again] == 5).all() and is_again.sum() == 2 * 2 * POINTS
    assert record[~is_again].equals(before[~is_again])


def test_a_new_campaign_of_more_pairs_takes_the_place_of_rows_of_another() -> None:
    losses = LOSSES["never-harms"]
    before = recorded([Stored("never-harms", losses)])  # type: ignore[arg-type]
    for pairs, name in ((300, "never-harms-decided"), (6, "never-harms")):
        more = Stored("never-harms-decided", losses, pairs=pairs)
        record = beside(recorded([more]), before)  # type: ignore[arg-type]
        assert len(record) == len(before) and (record["campaign"] == name).all()


class Database(dict[str, str]):
    """A results database whose campaigns are their names."""

    database = SimpleNamespace(address="few.sqlite")

    def campaigns(self) -> pd.DataFrame:
        return pd.DataFrame({"campaign": [*self]})


def test_campaigns_are_taken_from_whichever_database_has_them() -> None:
    first, second = ({name: name for name in names} for names in (("demo", CAMPAIGNS[3]), CAMPAIGNS[:1]))
    assert campaigns_in([Database(first), Database(second)]) == [CAMPAIGNS[3], CAMPAIGNS[0]]
    with pytest.raises(BadInput, match=r"few\.sqlite: must have one of the campaigns never-harms, "):
        campaigns_in([Database(demo="demo")])
    with pytest.raises(BadInput, match="must be one or more databases"):
        main([])


@pytest.fixture(scope="module")
def shipped() -> pd.DataFrame:
    return pd.read_parquet(RECORD)


def test_the_shipped_record_is_of_its_designs(shipped: pd.DataFrame) -> None:
    assert RECORD.stat().st_size < 1_000_000
    assert set(shipped["campaign"]) <= set(CAMPAIGNS)
    assert not shipped.duplicated(["congestion_control", "controller", "size_bytes", *NETWORK]).any()
    of_kinds = {"single": "never-harms", "bursts": "never-harms-bursts", "none": "never-harms-no-loss"}
    for kind, of_kind in shipped.groupby(kinds_of(shipped)):
        planned = pd.DataFrame(designs.load(designs.catalogue()[of_kinds[str(kind)]]).plan().points)
        for _, rows in of_kind.groupby(["congestion_control", "controller", "size_bytes"]):
            assert np.array_equal(rows["bandwidth_mbps"], planned["bandwidth_mbps"])
            assert np.array_equal(rows["rtt_ms"], 2 * planned["owd_ms"])
            assert np.array_equal(rows["queue_bdp"], planned["queue_bdp"])
            if kind == "single":
                assert np.array_equal(rows["loss"], planned["loss.p"])


def test_the_page_tells_what_the_record_holds(shipped: pd.DataFrame) -> None:
    """The record has the ratios of the page: those of the campaign never-harms."""
    page = (REPOSITORY / "docs/which-fec.md").read_text()
    table = page.partition("| losses of 0.1 to 10 %, one by one |")[2].partition("\n\n")[0]
    single = shipped[kinds_of(shipped) == "single"]
    compared = 0
    for (control, controller), rows in single.groupby(["congestion_control", "controller"]):
        name = {"cubic": "Cubic", "bbr3": "BBRv3"}[control]
        arm = {"safe": "`safe`", "tail": "in the tail"}[controller]
        (line,) = re.findall(rf"^\| {name}, {arm} \| (\d.*) \|$", table, re.MULTILINE)
        sizes = [1000, 10_000, 50_000, 200_000, 1_000_000, 5_000_000]
        for size, cell in zip(sizes, line.split(" | "), strict=True):
            of_size = rows[rows["size_bytes"] == size]
            if set(of_size["campaign"]) == {"never-harms"}:
                counts = [int((of_size["verdict"] == verdict).sum()) for verdict in ("gain", "harm")]
                decided = "; {}, {}".format(*counts) if size < 5_000_000 else ""
                assert cell == f"{np.exp(np.log(of_size['ratio'].astype(float)).mean()):.3f}{decided}"
                compared += 1
    assert compared >= 2 * 6 + 2 * 3
