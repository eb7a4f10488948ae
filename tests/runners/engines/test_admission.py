"""The number of trials that may run at once: with a clock and a machine that the tests set."""

import math

from fecbench.runners.engines.admission import (
    BUSY_SHARE,
    IDLE_SHARE,
    IDLE_WINDOW_S,
    TRIALS_PER_CORE,
    AtMost,
    Auto,
    Ended,
    ProcessorTime,
    processor_time,
)
from fecbench.runners.tasks.task import Task
from fecbench.topologies.link import LinkSettings
from tests.support import tasks


def task(bandwidth_mbps: float = 5) -> Task:
    return tasks.task(tasks.link(LinkSettings.symmetric(bandwidth_mbps, owd_ms=50)))


class Machine:
    """A clock, and cores that are idle to a share until now."""

    def __init__(self, cores: int = 2, *, ahead: bool = False) -> None:
        self.now = 1000.0
        self._idle = self._total = 0.0
        spent = None if ahead else lambda: ProcessorTime(int(self._idle), int(self._total))
        self.auto = Auto(cores, lambda: self.now, spent)
        self.running: list[tuple[Task, float]] = []

    def passes(self, seconds: float, idle_share: float = 1.0) -> None:
        self.now += seconds
        self._idle += 1e6 * seconds * idle_share
        self._total += 1e6 * seconds

    def wait_s(self, candidate: Task) -> float:
        return self.auto.wait_s(candidate, [running for running, _ in self.running])

    def begin(self, candidate: Task) -> None:
        self.running.append((candidate, self.now))
        self.auto.began()

    def fill(self, candidate: Task, idle_share: float = 1.0) -> int:
        """Begin trials like `wanted` until one must end first, and tell how many run."""
        while (wait_s := self.wait_s(candidate)) < math.inf:
            self.passes(wait_s, idle_share)
            if self.wait_s(candidate) == 0:
                self.begin(candidate)
        return len(self.running)

    def end(self, *, cores: float = 0.08, duration_s: float = 2.0, disturbed: bool = False) -> None:
        """The trial that began first ends now, after it took `cores`."""
        result, start_s = self.running.pop(0)
        self.auto.ended(Ended(result, start_s, duration_s, cores * duration_s, disturbed))

    def run(self, trials: int, *, cores: float = 0.08, disturbed: bool = False) -> int:
        """Run this many to their end, always as many at once as may be; how many run in the end."""
        for _ in range(trials):
            self.fill(task())
            self.passes(1.0)
            self.end(cores=cores, disturbed=disturbed)
        return self.fill(task())


def test_a_fixed_number_of_trials_runs_at_a_time() -> None:
    admission = AtMost(2)
    assert admission.wait_s(task(), [task()]) == 0
    assert admission.wait_s(task(), [task()] * 2) == math.inf


def test_cheap_trials_run_many_at_a_time_but_not_more_than_a_core_bears() -> None:
    assert Machine().run(100, cores=0.001) == 2 * TRIALS_PER_CORE


def test_trials_take_no_more_than_their_share_of_the_cores_by_what_they_were_measured_to_take() -> None:
    for cores in (0.12, 0.2, 0.3, 0.5):
        running = Machine().run(200, cores=cores)
        assert running == math.floor(BUSY_SHARE * 2 / cores)


def test_a_trial_of_a_fast_link_costs_more_than_one_of_a_slow_link_and_too_dear_a_one_runs_alone() -> None:
    assert 1 <= Machine().fill(task(100)) < Machine().fill(task(10)) < Machine().fill(task(1))
    assert Machine().fill(task(10_000)) == 1


def test_more_cores_run_more_trials() -> None:
    assert Machine(8).fill(task()) >= 4 * Machine(2).fill(task()) > 4


def test_the_first_trial_begins_at_once_and_the_next_a_little_later() -> None:
    machine = Machine()
    assert machine.wait_s(task()) == 0
    machine.begin(task())
    wait_s = machine.wait_s(task())
    assert 0 < wait_s < 2
    machine.passes(wait_s)
    assert machine.wait_s(task()) == 0


def test_the_next_trial_waits_less_when_trials_have_turned_out_to_be_cheap() -> None:
    new, learned = Machine(), Machine()
    learned.run(50)
    learned.running.clear()
    for machine in (new, learned):
        machine.passes(10)
        machine.begin(task())
    assert 0 < learned.wait_s(task()) < new.wait_s(task()) / 2


def test_nothing_begins_beside_another_trial_while_the_machine_is_busy() -> None:
    machine = Machine()
    machine.begin(task())
    for _ in range(5):
        machine.passes(IDLE_WINDOW_S, IDLE_SHARE - 0.05)
        assert 0 < machine.wait_s(task()) <= IDLE_WINDOW_S
    machine.passes(IDLE_WINDOW_S, IDLE_SHARE + 0.05)
    assert machine.wait_s(task()) == 0


def test_others_may_keep_the_machine_busy_when_trials_run_ahead_of_them() -> None:
    machine = Machine(ahead=True)
    assert machine.fill(task(), idle_share=0.0) == Machine().fill(task()) > 1


def test_what_the_harness_itself_takes_stops_no_trial_that_fits() -> None:
    beside_the_harness, alone = Machine(), Machine()
    assert beside_the_harness.fill(task(), 1 - BUSY_SHARE - 0.1) == alone.fill(task(), 1.0)


def test_a_trial_runs_even_on_a_machine_that_is_never_idle() -> None:
    machine = Machine()
    machine.passes(10, 0.0)
    assert machine.wait_s(task()) == 0


def test_fewer_run_after_a_disturbed_trial_and_slowly_as_many_again() -> None:
    machine = Machine()
    before = machine.run(50)
    machine.end(disturbed=True)
    machine.run(before)  # until those that were too many have ended
    after = len(machine.running)
    assert 1 <= after < before
    counts = [machine.run(1) for _ in range(100)]
    assert counts == sorted(counts)
    assert counts[5] < before
    assert counts[-1] == before


def test_the_trials_that_one_disturbance_has_met_count_once() -> None:
    once, often = Machine(), Machine()
    for machine, disturbed in ((once, 1), (often, 6)):
        machine.run(50)
        machine.passes(1)
        for number in range(6):
            machine.end(disturbed=number < disturbed)
        # The others were fine: what they add in the one case is less than a trial.
    assert abs(once.fill(task()) - often.fill(task())) <= 1


def test_one_trial_runs_however_often_it_was_disturbed() -> None:
    assert Machine().run(50, disturbed=True) == 1


def test_the_processor_time_of_this_machine_goes_on() -> None:
    one = processor_time()
    deadline = 10**6
    while processor_time().total == one.total and deadline:
        deadline -= 1
    other = processor_time()
    assert other.total > one.total
    assert 0 <= other.idle - one.idle <= other.total - one.total


def test_what_a_trial_took_is_learned_whether_it_was_disturbed_or_not() -> None:
    for disturbed in (False, True):
        machine = Machine()
        machine.begin(task())
        for _ in range(100):
            machine.end(cores=0.8, disturbed=disturbed)
            machine.begin(task())
        assert machine.fill(task()) == 1
