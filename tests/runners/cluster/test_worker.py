"""A worker takes part in a campaign only where its trials would be the same, or says why in one line."""

import dataclasses
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fecbench import designs
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from fecbench.runners.calibration import experiments as calibration
from fecbench.runners.calibration.table import Measurement, Table
from fecbench.runners.campaign import campaign, order, provenance
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import proposed_share
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.messages import Answer
from fecbench.runners.cluster.worker import Worker
from fecbench.runners.implementations.finding import Implementations
from fecbench.runners.tasks.task import VIRTUAL
from tests.results.conftest import postgresql, postgresql_folder  # noqa: F401 - fixtures
from tests.runners.cluster.conftest import Proposals, join_to, leave, lot_of
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE

Ask = Callable[..., Answer]


@pytest.fixture
def wanted(made_up: WriteDesign) -> Request:
    return request_of(made_up())


@pytest.fixture
def address(wanted: Request, postgresql: str) -> str:  # noqa: F811
    return begun(wanted, postgresql)


class Ended(BaseException):
    """Ends a worker, as a signal would."""


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def work(
    proposals: Proposals, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Runs a worker in a thread, which hears of proposals without a scheduler."""
    threads = []

    class Inbox:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> "Inbox":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def get(self, wait_s: float | None = 0.0) -> Any:
            asked = proposals.get(wait_s)
            if asked is not None and asked.proposal == leave("the end"):
                raise Ended
            return asked

        put_back = staticmethod(proposals.put_back)
        answer = staticmethod(proposals.answer)

    monkeypatch.setattr("fecbench.runners.cluster.worker.Inbox", Inbox)
    monkeypatch.setattr(proposed_share, "IDLE_S", 0.5)

    def work(folder: Path = HERE, database: str = "", lacks: str = "") -> None:
        worker = Worker(
            Place("tcp://ada:1", None), 1, Implementations([folder]), database, lambda: lacks, told.append
        )

        def run() -> None:
            with pytest.raises(Ended):
                worker.run()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield work
    proposals.propose(leave("the end"))
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def ask(proposals: Proposals) -> Ask:
    return lambda proposal: proposals.until_answered(proposals.propose(proposal))


def test_a_worker_runs_a_campaign_that_it_finds_in_the_database(
    work: Callable[..., None], ask: Ask, wanted: Request, address: str
) -> None:
    work()
    assert ask(join_to(address, calibrate=True)).joined
    answer = ask(lot_of(wanted, database=address))
    assert len(answer.done) == len(lot_of(wanted).groups)
    with Database.open(address) as database:
        (stored,) = database.campaigns()
        assert dict.fromkeys(wanted.keys, ("ok", 1)) == dict(database.states(stored.id))
        (start,) = database.starts(stored.id)
        assert start.provenance["calibration"][0]["kind"] == "virtual"
        assert len(database.campaigns()[0].provenance["calibration"]) == 1


def test_what_is_proposed_before_joining_is_not_run(
    work: Callable[..., None], ask: Ask, wanted: Request, address: str
) -> None:
    work()
    answer = ask(lot_of(wanted, database=address))
    assert not answer.joined and not answer.refused
    with Database.open(address) as database:
        assert database.trial_count(database.campaigns()[0].id) == 0


def refusal(told: list[str], answer: Answer) -> str:
    """Return why a worker refuses: in its answer, and in one line of its own."""
    assert not answer.joined
    assert [line for line in told if answer.refused in line] == told[-1:]
    assert "\n" not in answer.refused
    return answer.refused


def test_another_version_is_refused(
    work: Callable[..., None], ask: Ask, address: str, told: list[str]
) -> None:
    work()
    why = refusal(told, ask(join_to(address, fecbench="0.0.1")))
    assert "was asked by fecbench 0.0.1" in why


def test_another_binary_is_refused_and_named(
    work: Callable[..., None], ask: Ask, address: str, told: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "others"
    shutil.copytree(HERE / "made-up", other / "made-up")
    with (other / "made-up" / "simulator.py").open("a") as file:
        file.write("# another\n")
    work(other)
    assert "made-up/simulator.py" in refusal(told, ask(join_to(address)))


def test_another_harness_is_refused(
    work: Callable[..., None],
    ask: Ask,
    address: str,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    was = provenance.harness()
    monkeypatch.setattr(provenance, "harness", lambda: {**was, "version": "9.9"})
    work()
    assert "harness.version" in refusal(told, ask(join_to(address))) or "9.9" in told[-1]


@pytest.fixture
def emulated(made_up: WriteDesign, postgresql: str) -> str:  # noqa: F811
    return begun(request_of(made_up(), "wire"), postgresql)


def test_a_host_that_lacks_what_emulation_needs_is_refused(
    work: Callable[..., None], ask: Ask, emulated: str, told: list[str]
) -> None:
    work(lacks="this host lacks TUN/TAP: no: cannot open /dev/net/tun; mend: modprobe tun")
    assert "lacks TUN/TAP" in refusal(told, ask(join_to(emulated)))


def test_a_host_whose_link_is_not_what_it_should_be_is_refused(
    work: Callable[..., None], ask: Ask, emulated: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Measurement(name="delay error, p99", value=900.0, bound=400.0, unit="us")
    table = Table(kind="brief", at="", backend="wire", real_time=True, measurements=[late])
    monkeypatch.setattr(calibration, "measure_briefly", lambda _: table)
    work()
    assert "delay error, p99 is 900 us, the bound is 400" in refusal(
        told, ask(join_to(emulated, calibrate=True))
    )
    with Database.open(emulated) as database:
        assert database.starts(database.campaigns()[0].id) == []


def test_a_host_whose_simulator_answers_otherwise_each_time_is_refused(
    work: Callable[..., None],
    ask: Ask,
    made_up: WriteDesign,
    postgresql: str,  # noqa: F811
    told: list[str],
) -> None:
    begun(request_of(made_up("remembers")), postgresql)
    work()
    assert "made-up" in refusal(told, ask(join_to(postgresql, calibrate=True)))


def test_an_unknown_campaign_and_a_file_are_refused(
    work: Callable[..., None], ask: Ask, address: str, told: list[str]
) -> None:
    work()
    assert "has no campaign 'large'" in refusal(told, ask(join_to(address, "large")))
    assert "no server of PostgreSQL" in refusal(told, ask(join_to("/tmp/x.sqlite")))


def test_a_worker_with_a_database_of_its_own_uses_no_other(
    work: Callable[..., None], ask: Ask, address: str
) -> None:
    work(database=address)
    assert ask(join_to("postgresql://nowhere.invalid/other")).joined


def test_a_worker_takes_part_in_one_campaign_after_another(
    work: Callable[..., None], ask: Ask, wanted: Request, address: str
) -> None:
    begun(dataclasses.replace(wanted, name="second"), address)
    work()
    assert ask(join_to(address)).joined
    ask(lot_of(wanted, 1, database=address))
    assert ask(join_to(address, "second")).joined
    answer = ask(lot_of(wanted, name="second", database=address))
    assert len(answer.done) == len({key.group for key in wanted.keys})
    with Database.open(address) as database:
        ran: dict[str, set[TrialKey]] = {
            info.name: set(database.states(info.id)) for info in database.campaigns()
        }
    assert (len(ran["little"]), ran["second"]) == (2, set(wanted.keys))


def _renamed(request: Request, name: str) -> Request:
    return dataclasses.replace(request, name=name)


def test_a_campaign_of_the_same_name_in_another_database_is_not_run_into_this_one(
    work: Callable[..., None], ask: Ask, wanted: Request, address: str
) -> None:
    work()
    assert ask(join_to(address)).joined
    answer = ask(lot_of(wanted, database="postgresql://bob/y"))
    assert (answer.joined, answer.done) == (False, [])
    with Database.open(address) as database:
        assert database.trial_count(database.campaigns()[0].id) == 0


def request_of(path: Path, backend: str = VIRTUAL) -> Request:
    """Return a request for all trials of a design with the simulator that is made up."""
    design = designs.load(path)
    experiment = Experiment(design, design.plan().points, Implementations([HERE]))
    keys = order.trial_keys(design, len(experiment.points))
    return Request(experiment=experiment, keys=keys, name="little", backend=backend, jobs=1, calibrate=False)


def begun(wanted: Request, address: str) -> str:
    """A database that has the campaign, and no trial."""
    with Database.open(address, create=True) as database:
        campaign.begun(wanted, database)
    return address
