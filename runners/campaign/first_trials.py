"""Whether the first trials of a start all came to nothing for one reason: then the reason is no result.

A machine that is set up wrongly, a stack that is built wrongly and a design that asks for what cannot be fail
every trial alike, some 100 times a second. Ten are enough to know it. A trial that ran out of time does not
count: a slow network is a result.
"""

import re

from fecbench.errors import Failed
from fecbench.runners.tasks.outcome import Outcome
from fecbench.runners.trial.judge import Judgement

COUNT = 10
_OWN_TO_A_TRIAL = re.compile(r"\S*[\d/]\S*")
"""Numbers and paths: two trials that end alike may differ in these."""
_GOES_ON = ", or go on with --keep-going of fecbench run if it is a result"


class AllAlike(Failed):
    """The first trials all came to nothing, and the line names the reason."""


class FirstTrials:
    """Watches the first trials of a start."""

    def __init__(self, campaign: str, *, of_endpoints: bool) -> None:
        """Count failures of endpoints, too, with `of_endpoints`, not only those of the harness."""
        self._campaign = campaign
        self._of_endpoints = of_endpoints
        self._left = COUNT
        self._reason: str | None = None

    def add(self, judgement: Judgement, outcome: Outcome) -> None:
        """Take the next trial that has ended. Raise AllAlike when it is the last of COUNT that end alike."""
        if not self._left:
            return
        of_endpoint = self._of_endpoints and judgement.state in ("failed", "unsupported")
        reason = _OWN_TO_A_TRIAL.sub("", judgement.reason)
        if not (outcome.failure or of_endpoint) or reason != (self._reason or reason):
            self._left = 0
            return
        self._reason, self._left = reason, self._left - 1
        if not self._left:
            raise AllAlike(
                f"campaign {self._campaign}: its first {COUNT} trials are all {judgement.state} for one"
                f" reason, so no other was run: {judgement.reason}; mend that and add --retry"
                f" {judgement.state}{'' if outcome.failure else _GOES_ON}"
            )
