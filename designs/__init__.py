"""Design files, the space-filling planners and the criteria of their quality."""

from designs.catalogue import catalogue
from designs.design import Design, Variant, Workload, load, parse, rewritten
from designs.error import DesignError
from designs.planner import Plan
from designs.seeds import seed
from designs.table import Value

__all__ = [
    "Design",
    "DesignError",
    "Plan",
    "Value",
    "Variant",
    "Workload",
    "catalogue",
    "load",
    "parse",
    "rewritten",
    "seed",
]
