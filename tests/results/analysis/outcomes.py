"""Outcomes of trials to draw from, and the frame that they make, for tests of what is computed from
frames."""

from itertools import product

import pandas as pd
from hypothesis import strategies as st

from fecbench.results.metrics import DEFAULT
from fecbench.results.store.records import STATES, TrialKey

Outcomes = dict[TrialKey, tuple[str, float]]

OFF, XOR = "rquic-off", "rquic-xor"
VARIANTS, WORKLOADS, POINTS, REPETITIONS = (OFF, XOR), ("download-10000", "download-2000"), (0, 1), range(3)
KEYS = [TrialKey(*key) for key in product(VARIANTS, WORKLOADS, POINTS, REPETITIONS)]

# Small numbers, so that ties, ratios of 1 and complete points are common.
one_outcome = st.none() | st.tuples(st.sampled_from(["ok"] * 8 + [*STATES]), st.integers(1, 5).map(float))
outcomes = st.lists(one_outcome, min_size=len(KEYS), max_size=len(KEYS)).map(
    lambda drawing: {key: outcome for key, outcome in zip(KEYS, drawing, strict=True) if outcome}
)
# As many timeouts as values: of each arm alone, and of both.
often_timed_out = st.tuples(st.sampled_from(["ok", "timeout"]), st.integers(1, 5).map(float))
timeouts = st.lists(often_timed_out, min_size=len(KEYS), max_size=len(KEYS)).map(
    lambda drawing: dict(zip(KEYS, drawing, strict=True))
)


def frame_with(outcomes: Outcomes, metric: str = DEFAULT) -> pd.DataFrame:
    """Return the frame that `frames.trials` makes of these outcomes, without a database; a test of frames
    checks that. Trials beside KEYS come last."""
    keys = [*filter(outcomes.__contains__, KEYS), *(key for key in outcomes if key not in KEYS)]
    rows = [(k.variant, k.workload, k.point, k.repetition, *outcomes[k]) for k in keys]
    columns = ["variant", "workload", "point", "repetition", "state", metric]
    frame = pd.DataFrame(rows, columns=columns)
    for name, order in (("variant", VARIANTS), ("workload", WORKLOADS), ("state", STATES)):
        frame[name] = pd.Categorical(frame[name], list(order), ordered=True)
    return frame
