"""Advice for a network, from recorded campaigns: the designs `never-harms…` in virtual time.

`python -m fecbench.results.advice DATABASE…` writes the record anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fecbench.lazy import names_of

if TYPE_CHECKING:
    from fecbench.results.advice.answer import Advice as Advice
    from fecbench.results.advice.answer import Candidate as Candidate
    from fecbench.results.advice.answer import advise as advise
    from fecbench.results.advice.network import CongestionControl as CongestionControl
    from fecbench.results.advice.network import Network as Network
    from fecbench.results.advice.record import CONTROLLERS as CONTROLLERS
    from fecbench.results.advice.record import RECORD as RECORD

__all__, __getattr__ = names_of(__name__, __file__)
