"""The scale on which a factor is shown, in figures, maps and charts: linear or logarithmic."""

from collections.abc import Mapping

import pandas as pd

_WIDE = 20  # times as great as the least value: what is wide is shown on a logarithmic scale


def is_wide(values: pd.Series) -> bool:
    """Whether a factor with these values is shown, and cut into cells, on a logarithmic scale."""
    return bool(
        pd.api.types.is_numeric_dtype(values) and values.min() > 0 and values.max() / values.min() > _WIDE
    )


def is_log(values: pd.Series, scales: Mapping[str, str]) -> bool:
    """Whether a factor is shown on a logarithmic scale: that of the design (`CampaignInfo.scales`), or, where
    the design has none, as its values are wide."""
    scale = scales.get(str(values.name))
    return is_wide(values) if scale is None else scale == "log" and bool(values.min() > 0)
