"""Design files, the space-filling planners and the criteria of their quality."""

from fecbench.designs.catalogue import catalogue
from fecbench.designs.design import Design, Variant, Workload, load, parse, rewritten
from fecbench.designs.error import DesignError
from fecbench.designs.planner import Plan
from fecbench.designs.seeds import seed
from fecbench.designs.table import Value

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
