"""Advice for a network, from recorded campaigns: the designs `never-harms…` in virtual time.

`python -m fecbench.results.advice DATABASE…` writes the record anew.
"""

from fecbench.results.advice.answer import Advice, Candidate, advise
from fecbench.results.advice.network import CongestionControl, Network
from fecbench.results.advice.record import CONTROLLERS, RECORD

__all__ = ["CONTROLLERS", "RECORD", "Advice", "Candidate", "CongestionControl", "Network", "advise"]
