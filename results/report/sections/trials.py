"""What happened to trials: which were run again, which no ratio contains, and what disturbed them."""

from __future__ import annotations

from typing import Self

from fecbench.results.report.sections.section import Number, Section
from fecbench.results.store.records import State, StoredTrial


class Trial(Section):
    """A run of a trial that is listed by itself."""

    id: int
    variant: str
    workload: str
    point: int
    repetition: int
    attempt: int
    """Counts from 1."""
    state: State
    reason: str
    """Empty when ok."""

    @classmethod
    def of(cls, stored: StoredTrial) -> Self:
        """Return a run that the database holds."""
        record = stored.record
        return cls(
            id=stored.id,
            variant=record.key.variant,
            workload=record.key.workload,
            point=record.key.point,
            repetition=record.key.repetition,
            attempt=stored.attempt,
            state=record.state,
            reason=record.reason,
        )


class Unpaired(Section):
    """Repetitions of a variant on a workload that no ratio contains."""

    variant: str
    workload: str
    reason: str
    repetitions: int


class Attempts(Section):
    """How often the trials of a variant were run, superseded runs included."""

    variant: str
    attempts: int
    ok: int
    failed: int
    timeout: int
    unsupported: int
    invalid: int
    superseded: int
    """Runs that a later one replaced."""
    retried_groups: int
    """Groups in which this variant was run again."""
    invalid_share: Number
    """Of the attempts."""
    low: Number
    """With `high`, the interval of this share."""
    high: Number
    p_value: Number
    """That the share is that of the baseline (Fisher's exact test)."""


class SecondTry(Section):
    """The ratios of a variant on a workload with all groups, and (`…_first`) without those that needed a
    second try."""

    workload: str
    variant: str
    points: int
    """That have a ratio."""
    median_ratio: Number
    low: Number
    """With `high`, the interval of the median ratio."""
    high: Number
    verdict: str
    """What the interval says: "gain", "harm", "equivalent" or "undecided"."""
    points_first: int
    median_ratio_first: Number
    low_first: Number
    high_first: Number
    verdict_first: str


class SecondTries(Section):
    """Whether first attempts alone decide otherwise."""

    groups: int
    """That have a trial: repetitions of a workload at a point, with all their variants."""
    left_out: int
    """Groups that needed a second try."""
    rows: list[SecondTry]
    differences: list[str]
    """A sentence for each decision that is another one."""


class Outage(Section):
    """How many trials of a variant on a workload met an outage of a link."""

    workload: str
    variant: str
    trials: int
    """That are ok or timed out."""
    met_outage: int
    """Of them."""
    compared_with: str
    """The label of its baseline; "" where there is none."""
    pairs: int
    """Of the variant and its baseline."""
    alone: int
    """Pairs in which the variant alone met an outage."""
    spared: int
    """Pairs in which the baseline alone did."""


class Disturbance(Section):
    """What the machine did to the valid trials of a variant."""

    variant: str
    trials: int
    """That are valid, and of which stalls are known."""
    stalled: int
    """Trials whose endpoints were kept from running."""
    stalled_share: Number
    """For which share of its time: the median."""
    stalled_p95_ms: Number
    stalled_max_ms: Number
    late: Number
    """Trials in which a packet left its link later than the link's bound."""
    late_max_ms: Number
    stolen_max_ms: Number
    """How long a hypervisor kept a processor from running, at most."""
