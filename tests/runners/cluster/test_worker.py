"""A worker takes part in a campaign only where its trials would be the same, or says why in one line."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fecbench.results.store.database import Database, DatabaseError
from fecbench.runners.calibration import experiments as calibration
from fecbench.runners.calibration.table import Measurement, Table
from fecbench.runners.campaign import campaign, provenance
from fecbench.runners.campaign.request import Request
from fecbench.runners.cluster import worker as workers
from fecbench.runners.cluster.address import Place
from fecbench.runners.cluster.messages import Answer, Join
from fecbench.runners.cluster.worker import Inbox, Worker
from fecbench.runners.implementations.finding import Implementations
from tests.results.conftest import postgresql, postgresql_folder  # noqa: F401 - fixtures
from tests.runners.cluster.conftest import begun, join_to, messenger_of, request_of
from tests.runners.conftest import WriteDesign
from tests.runners.engines.conftest import HERE
from tests.support.campaigns import only_campaign
from tests.waiting import wait_until

Ask = Callable[..., Answer]
RETRIED = ("failed", "invalid", "timeout", "unsupported")


@pytest.fixture
def wanted(made_up: WriteDesign) -> Request:
    return request_of(made_up())


@pytest.fixture
def address(wanted: Request, postgresql: str) -> str:  # noqa: F811
    return begun(wanted, postgresql)


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def ask(notes: list[str]) -> Ask:
    """Asks a worker of this machine to take part, and returns its answer."""

    def ask(
        join: Join,
        *,
        folder: Path = HERE,
        database: str = "",
        lacks: str = "",
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Answer:
        place = Place("tcp://ada:1", None)
        worker = Worker(place, 1, Implementations([folder]), database, lambda: lacks, notes.append)
        return worker.take_part(join, is_wanted)

    return ask


def test_a_worker_runs_a_campaign_that_it_finds_in_the_database(
    ask: Ask, wanted: Request, address: str, notes: list[str]
) -> None:
    assert ask(join_to(address, calibrate=True)).state == "done"
    assert any("campaign little: takes part" in note for note in notes)
    with only_campaign(address) as (database, stored):
        assert dict.fromkeys(wanted.keys, ("ok", 1)) == dict(database.states(stored.id))
        (start,) = database.starts(stored.id)
        assert start.provenance["calibration"][0]["kind"] == "virtual"
        assert len(stored.provenance["calibration"]) == 1
        assert database.claims(stored.id) == {}


def test_a_worker_runs_what_the_filters_choose(ask: Ask, wanted: Request, address: str) -> None:
    assert ask(join_to(address, filters=["repetition=0"])).state == "done"
    with Database.open(address) as database:
        states = database.states(database.campaigns()[0].id)
    assert set(states) == {key for key in wanted.keys if key.repetition == 0}


def test_a_trial_is_run_again_once_however_many_workers_are_asked_to(
    ask: Ask,
    made_up: WriteDesign,
    postgresql: str,  # noqa: F811
) -> None:
    """Each of them reads the database when it comes."""
    begun(request_of(made_up("refuses")), postgresql)
    ask(join_to(postgresql))
    with only_campaign(postgresql) as (database, stored):
        ids = database.id_range(stored.id)
        assert ids is not None
        once = dict(database.states(stored.id))
        bad = {key for key, (state, _) in once.items() if state != "ok"}
        assert len(bad) == len(once) / 2
        for _ in range(2):
            assert ask(join_to(postgresql, retry=list(RETRIED), after=ids[1])).state == "done"
        assert database.states(stored.id) == {
            key: (state, 1 + (key in bad)) for key, (state, _) in once.items()
        }
        assert database.states(stored.id, up_to=ids[1]) == once


def test_a_worker_that_is_not_wanted_any_more_ends_its_groups_and_leaves(
    ask: Ask, wanted: Request, address: str, notes: list[str]
) -> None:
    looks = iter([True, True])
    assert ask(join_to(address), is_wanted=lambda: next(looks, False)).state == "left"
    with only_campaign(address) as (database, stored):
        assert database.claims(stored.id) == {}
        ran = {key.group for key in database.states(stored.id)}
        assert 0 < len(ran) < len({key.group for key in wanted.keys})
        assert {key for key in wanted.keys if key.group in ran} == set(database.states(stored.id))
    assert notes[-1] == "campaign little: left, as nobody waits for it"


def test_a_worker_whose_database_is_gone_for_long_leaves_and_may_be_asked_again(
    ask: Ask, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise DatabaseError("the server is gone")

    monkeypatch.setattr(campaign, "run", gone)
    answer = ask(join_to(address))
    assert (answer.state, answer.why) == ("left", "the server is gone")


def refusal(notes: list[str], answer: Answer) -> str:
    """Return why a worker refuses: in its answer, and in one line of its own."""
    assert answer.state == "refused"
    assert [line for line in notes if answer.why in line] == notes[-1:]
    assert "\n" not in answer.why
    return answer.why


def test_another_version_is_refused(ask: Ask, address: str, notes: list[str]) -> None:
    assert "was asked by fecbench 0.0.1" in refusal(notes, ask(join_to(address, fecbench="0.0.1")))


def test_another_binary_is_refused_and_named(
    ask: Ask, address: str, notes: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "others"
    shutil.copytree(HERE / "made-up", other / "made-up")
    with (other / "made-up" / "simulator.py").open("a") as file:
        file.write("# another\n")
    assert "made-up/simulator.py" in refusal(notes, ask(join_to(address), folder=other))


def test_another_harness_is_refused(
    ask: Ask, address: str, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    was = provenance.harness()
    monkeypatch.setattr(provenance, "harness", lambda: {**was, "version": "9.9"})
    assert "harness.version" in refusal(notes, ask(join_to(address))) or "9.9" in notes[-1]


@pytest.fixture
def emulated(made_up: WriteDesign, postgresql: str) -> str:  # noqa: F811
    return begun(request_of(made_up(), "wire"), postgresql)


def test_a_host_that_lacks_what_emulation_needs_is_refused(ask: Ask, emulated: str, notes: list[str]) -> None:
    lacks = "this host lacks TUN/TAP: no: cannot open /dev/net/tun; mend: modprobe tun"
    assert "lacks TUN/TAP" in refusal(notes, ask(join_to(emulated), lacks=lacks))


def test_a_host_whose_link_is_not_what_it_should_be_is_refused(
    ask: Ask, emulated: str, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Measurement(name="delay error, p99", value=900.0, bound=400.0, unit="us")
    table = Table(kind="brief", at="", backend="wire", real_time=True, measurements=[late])
    monkeypatch.setattr(calibration, "measure_briefly", lambda _: table)
    why = refusal(notes, ask(join_to(emulated, calibrate=True)))
    assert "delay error, p99 is 900 us, the bound is 400" in why
    with Database.open(emulated) as database:
        assert database.starts(database.campaigns()[0].id) == []


def test_a_host_whose_simulator_answers_otherwise_each_time_is_refused(
    ask: Ask,
    made_up: WriteDesign,
    postgresql: str,  # noqa: F811
    notes: list[str],
) -> None:
    begun(request_of(made_up("remembers")), postgresql)
    assert "made-up" in refusal(notes, ask(join_to(postgresql, calibrate=True)))


def test_an_unknown_campaign_an_unknown_filter_and_a_file_are_refused(
    ask: Ask, address: str, notes: list[str]
) -> None:
    assert "has no campaign 'large'" in refusal(notes, ask(join_to(address, "large")))
    assert "moon=1" in refusal(notes, ask(join_to(address, filters=["moon=1"])))
    assert "no server of PostgreSQL" in refusal(notes, ask(join_to("/tmp/x.sqlite")))


def test_a_worker_with_a_database_of_its_own_uses_no_other(ask: Ask, address: str, wanted: Request) -> None:
    begun(dataclasses.replace(wanted, name="second"), address)
    assert ask(join_to("postgresql://nowhere.invalid/other", "second"), database=address).state == "done"


# The messenger of a worker

JOINS = """
import sys, time
from tests.runners.cluster.hostile_messenger import asked
print('{"kind": "connected"}', flush=True)
sys.stdin.readline()
"""
ASKS = JOINS + "print(asked(1), end='', flush=True); "


@pytest.fixture
def inbox_of(monkeypatch: pytest.MonkeyPatch, notes: list[str]) -> Callable[[str], Inbox]:
    """Makes an inbox whose messengers run this program."""

    def made(program: str) -> Inbox:
        monkeypatch.setattr(workers, "PROGRAM", program)
        monkeypatch.setattr(workers, "AGAIN_S", 0.1)
        monkeypatch.setattr(workers, "LOOK_S", 0.1)
        return Inbox(Place("tcp://ada:1", None), "ada", notes.append)

    return made


def test_a_request_is_wanted_until_it_is_withdrawn(inbox_of: Callable[[str], Inbox]) -> None:
    withdraws = 'time.sleep(1); print(\'{"kind": "withdrawn", "number": 1}\', flush=True); time.sleep(1000)'
    with inbox_of(ASKS + withdraws) as inbox:
        assert inbox.take().campaign == "little-1"
        assert inbox.is_wanted()
        wait_until(lambda: not inbox.is_wanted(), "that nobody wants it")


def test_without_a_scheduler_a_campaign_goes_on_until_another_one_is_asked_for(
    inbox_of: Callable[[str], Inbox], notes: list[str], tmp_path: Path
) -> None:
    """The first messenger ends; the second one asks for the same, and the third for another."""
    count = tmp_path / "count"
    count.write_text("")
    count.chmod(0o666)
    tmp_path.chmod(0o755)
    numbered = (
        f"path = {str(count)!r}; before = len(open(path).read()); open(path, 'a').write('x'); "
        "print(asked(max(1, before)), end='', flush=True); "
        "time.sleep(1 if before < 2 else 1000)"
    )
    with inbox_of(JOINS + numbered) as inbox:
        assert inbox.take().campaign == "little-1"
        wait_until(lambda: sum("no connection" in note for note in notes) == 1, "the first end")
        assert inbox.is_wanted()
        wait_until(lambda: sum("no connection" in note for note in notes) == 2, "the second end")
        wait_until(lambda: not inbox.is_wanted(), "the other campaign")
        inbox.answer(Answer(host="ada", state="left"))
        assert inbox.take().campaign == "little-2"


@pytest.mark.parametrize(
    ("manner", "what"),
    [("garbage", 'it said b\'{"kind": "workers"'), ("roars", "it said a line of more than")],
)
def test_a_messenger_that_says_what_it_should_not_is_replaced(
    inbox_of: Callable[[str], Inbox], notes: list[str], manner: str, what: str
) -> None:
    with inbox_of(messenger_of(manner)):
        wait_until(lambda: len(notes) >= 1, "a note")
    assert what in notes[0]
    assert max(map(len, notes)) < 500


def test_a_messenger_with_more_requests_than_any_has_is_replaced(
    inbox_of: Callable[[str], Inbox], notes: list[str]
) -> None:
    many = "[print(asked(number), end='', flush=True) for number in range(100)]; time.sleep(1000)"
    with inbox_of(JOINS + many):
        wait_until(lambda: any("has more than 64 requests" in note for note in notes), "a note")
