"""Design files, the space-filling planners and the criteria of their quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.designs.catalogue import catalogue as catalogue
from fecbench.lazy import names_of

if TYPE_CHECKING:
    from fecbench.designs.design import Design as Design
    from fecbench.designs.design import Variant as Variant
    from fecbench.designs.design import Workload as Workload
    from fecbench.designs.design import load as load
    from fecbench.designs.design import parse as parse
    from fecbench.designs.design import rewritten as rewritten
    from fecbench.designs.error import DesignError as DesignError
    from fecbench.designs.planner import Plan as Plan
    from fecbench.designs.seeds import seed as seed
    from fecbench.designs.table import Value as Value

__all__, __getattr__ = names_of(__name__, __file__)
__all__ += ["catalogue"]
