"""The fate of trials: those that were run again, those in no ratio, and those that were disturbed."""

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
    """The attempts of a variant's trials, superseded runs included."""

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
    """The share of invalid attempts."""
    low: Number
    """The lower end of this share's interval (`high`: the upper)."""
    high: Number
    p_value: Number
    """The p-value that the share is that of the baseline (Fisher's exact test)."""


class SecondTry(Section):
    """The ratios of a variant on a workload with all groups, and (`…_first`) without those that needed a
    second try."""

    workload: str
    variant: str
    points: int
    """The number of points that have a ratio."""
    median_ratio: Number
    low: Number
    """The lower end of the interval of the median ratio (`high`: the upper)."""
    high: Number
    verdict: str
    """The verdict of the interval: "gain", "harm", "equivalent" or "undecided"."""
    points_first: int
    median_ratio_first: Number
    low_first: Number
    high_first: Number
    verdict_first: str


class SecondTries(Section):
    """Whether first attempts alone decide otherwise."""

    groups: int
    """The number of groups with a trial: repetitions of a workload at a point, with all their variants."""
    left_out: int
    """Groups that needed a second try."""
    rows: list[SecondTry]
    differences: list[str]
    """A sentence for each decision that is another one."""


class Outage(Section):
    """The trials of a variant on a workload that met an outage of a link."""

    workload: str
    variant: str
    trials: int
    """The number of trials that are ok, failed or timed out."""
    met_outage: int
    """The number of them that met an outage."""
    compared_with: str
    """The label of its baseline; "" where there is none."""
    pairs: int
    """The number of pairs of the variant and its baseline."""
    alone: int
    """Pairs in which the variant alone met an outage."""
    spared: int
    """Pairs in which the baseline alone did."""


class Disturbance(Section):
    """The disturbances of a variant's valid trials by the machine."""

    variant: str
    trials: int
    """The number of trials that are valid, and whose stalls are known."""
    stalled: int
    """Trials whose endpoints were kept from running."""
    stalled_share: Number
    """The share of its time for which a trial stalled: the median."""
    stalled_p95_ms: Number
    stalled_max_ms: Number
    late: Number
    """Trials in which a packet left its link later than the link's bound."""
    late_max_ms: Number
    stolen_max_ms: Number
    """The longest time for which a hypervisor kept a processor from running."""
