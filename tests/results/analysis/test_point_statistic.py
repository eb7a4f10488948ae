"""The statistic of many columns at once is that of each."""

import numpy as np
import pandas as pd
import pytest

from fecbench.results.analysis.point_statistic import STATISTICS, by_group, of_columns


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_statistic_of_columns_is_that_of_each_of_them(statistic: str) -> None:
    random = np.random.default_rng(3)
    keys = pd.MultiIndex.from_product(
        [["a", "b"], [0, 1], range(25)], names=["variant", "point", "repetition"]
    )
    table = keys.to_frame(index=False).assign(time=random.random(100), share=random.random(100))
    table.loc[random.integers(100, size=20), "time"] = np.nan
    more_is_better = {"time": False, "share": True}
    of_all = of_columns(table, ["variant", "point"], more_is_better, statistic)
    assert list(of_all.columns) == ["time", "share"]
    for name, more in more_is_better.items():
        pd.testing.assert_series_equal(
            of_all[name], by_group(table, ["variant", "point"], name, statistic, more)
        )
