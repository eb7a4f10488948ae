"""`fecbench serve`: the pages of a database, read only and for this machine alone."""

import http.client
import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fecbench.results.report import live
from fecbench.results.store.database import Database, DatabaseError
from fecbench.results.store.records import Stop, TrialKey
from fecbench.runners.commands.console.serving import Answer, Server, Site
from tests.results.pages import page_of
from tests.runners.conftest import Done
from tests.support.campaigns import new_campaign, trial, variants, workload

NAME = "a/b & <c>"
ADDRESS = "/campaign/a%2Fb%20%26%20%3Cc%3E"
REPETITIONS = 3
PLANNED = 2 * REPETITIONS


@pytest.fixture
def db(plant: Any, tmp_path: Path) -> Path:
    """Two campaigns: of a few points, and one whose name an address has to quote and whose trials come."""
    path = plant(tmp_path / "live.sqlite", points=3)
    with Database.open(str(path)) as database:
        database.create_campaign(
            new_campaign(
                name=NAME,
                points=[{"loss.p": 0.02}],
                repetitions=REPETITIONS,
                variants=variants("off", "on", baseline="off"),
                workloads=[workload("download-1000", size_bytes=1000)],
            )
        )
    return path


@pytest.fixture
def site(db: Path) -> Iterator[Site]:
    with Database.open(str(db), read_only=True) as database:
        yield Site(database)


def text(site: Site, target: str) -> str:
    answer = site.answer(target)
    assert answer.status == HTTPStatus.OK, target
    return answer.content.decode()


def record_growing(db: Path, repetition: int) -> None:
    """Record a repetition of the campaign whose trials come."""
    with Database.open(str(db)) as writer:
        info = writer.campaign(NAME)
        for label in ("off", "on"):
            writer.record(info.id, trial(TrialKey(label, "download-1000", 0, repetition), "ok"))


def test_the_page_its_figures_and_tables_are_those_of_the_database(site: Site, db: Path) -> None:
    first = text(site, "/")
    assert "/campaign/planted/trials.csv" in first and f'href="{ADDRESS}"' in first and "<c>" not in first
    page = text(site, "/campaign/planted")
    with Database.open(str(db)) as database:
        (info, _) = database.campaigns()
        written = page_of(database, info)
    answer = written[written.index('<section id="answer"') : written.index("</section>")]
    assert answer in page and "data:image/png" not in page
    figure = site.answer("/campaign/planted/figure/ratio.png")
    assert (figure.kind, figure.content[:4]) == ("image/png", b"\x89PNG")
    table = pd.read_csv(io.StringIO(text(site, "/campaign/planted/trials.csv")))
    assert len(table) == 6 and set(table["state"]) == {"ok"}
    for name in ("summary", "ratios", "points"):
        assert len(text(site, f"/campaign/planted/{name}.csv").splitlines()) > 1
    beside = text(site, f"/beside?left=planted&right={ADDRESS.rpartition('/')[2]}")
    assert 'src="/campaign/planted"' in beside and f'src="{ADDRESS}"' in beside


def test_a_page_grows_while_the_campaign_runs_and_is_kept_while_nothing_comes(
    site: Site, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, pages = [], []
    make = type(site._pages)._make
    monkeypatch.setattr(type(site._pages), "_make", lambda *words: calls.append(1) or make(*words))
    monkeypatch.setattr("fecbench.results.report.live._REST", 0)

    def standing() -> dict[str, Any]:
        answer = json.loads(text(site, f"{ADDRESS}/standing.json"))
        pages.append(answer.pop("page"))
        return answer

    first = text(site, ADDRESS)
    assert standing() == {"states": {}, "done": 0, "planned": PLANNED, "ended": False, "shown": 0}
    assert len(calls) == 1
    record_growing(db, 0)
    assert standing() == {"states": {"ok": 2}, "done": 2, "planned": PLANNED, "ended": False, "shown": 2}
    assert standing()["shown"] == 2 and len(calls) == 2
    assert f"2 of {PLANNED} trials" in text(site, ADDRESS)
    before, after, _ = pages
    assert before != after and before in first and after in text(site, ADDRESS)


def test_a_figure_has_the_trials_of_the_page_that_shows_it(
    site: Site, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = live.__dict__["draw"]

    def draw(figures: Any, evidence: Any) -> Any:
        figures.draw("count", "", lambda: len(evidence.run))
        return real(figures, evidence)

    monkeypatch.setattr(live, "draw", draw)
    monkeypatch.setattr(live, "_picture", lambda draw, _: ("text/plain", f"{draw()}".encode()))
    monkeypatch.setattr(live, "_REST", 0)
    page, figures = text(site, ADDRESS), []
    for repetition in range(2):
        (version,) = set(re.findall(r"figure/[^?]*[?]page=(\w+)", page))
        figures.append(f"{ADDRESS}/figure/count.png?page={version}")
        record_growing(db, repetition)
        page = text(site, ADDRESS)
    assert [text(site, figure) for figure in figures] == ["0", "2"]
    assert text(site, f"{ADDRESS}/figure/count.png") == "4"
    monkeypatch.setattr(live, "_MOST_TRIALS", 4)
    record_growing(db, 2)
    text(site, ADDRESS)
    assert "load the page anew" in text(site, figures[0])
    assert text(site, f"{ADDRESS}/figure/count.png") == "6"


def test_places_that_another_process_stops_are_no_longer_planned(site: Site, db: Path) -> None:
    """No trial comes then: the page is made anew all the same."""
    with Database.open(str(db)) as writer:
        early = writer.create_campaign(
            new_campaign("early", repetitions=40, design_text='until = "decided"', variants=variants("off"))
        )
        for repetition in range(20):
            state = "ok" if repetition else "invalid"
            writer.record(early.id, trial(TrialKey("off", "download-1", 0, repetition), state))
        assert "19 of 40 trials" in text(site, "/campaign/early")
        writer.stop(early.id, [Stop("download-1", 0, 20, "decided", {})])
    standing = json.loads(text(site, "/campaign/early/standing.json"))
    assert (standing["done"], standing["planned"], standing["ended"]) == (19, 20, True)
    assert "19 of 20 trials" in text(site, "/campaign/early")


def test_a_database_that_is_replaced_is_read_anew_and_one_that_is_gone_is_refused(
    site: Site, db: Path, plant: Any, tmp_path: Path
) -> None:
    text(site, "/campaign/planted")
    plant(tmp_path / "new.sqlite", points=2).replace(db)
    standing = json.loads(text(site, "/campaign/planted/standing.json"))
    assert (standing["done"], standing["shown"]) == (4, 4)
    assert "4 of 4 trials" in text(site, "/campaign/planted")
    db.unlink()
    with pytest.raises(DatabaseError, match="no such database"):
        site.answer("/")


def test_the_list_and_the_page_count_trials_alike_invalid_ones_too(site: Site, db: Path) -> None:
    with Database.open(str(db)) as writer:
        info = next(info for info in writer.campaigns() if info.name == NAME)
        for label, state in (("off", "ok"), ("on", "invalid")):
            metrics = {"client": {"dct_s": 1.0}}
            writer.record(info.id, trial(TrialKey(label, "download-1000", 0, 0), state, metrics=metrics))
    assert "2 of 6: 1 invalid, 1 ok" in text(site, "/")
    assert "2 of 6 trials: 1 invalid, 1 ok" in text(site, ADDRESS)


@pytest.mark.parametrize(
    "target",
    [
        *(
            "/campaign",
            "/campaign/none",
            "/campaign/../../etc/passwd",
            "/campaign/planted/../x",
            "//etc/passwd",
        ),
        *("/campaign/planted/figure/..%2F..%2Fetc%2Fpasswd", "/campaign/planted/figure/none.png"),
        *("/campaign/planted/figure/ratio.exe", "/campaign/planted/secrets.csv", "/beside?left=planted", "*"),
        "http://[",
    ],
)
def test_what_is_not_of_the_database_is_not_found(site: Site, target: str) -> None:
    assert site.answer(target).status == HTTPStatus.NOT_FOUND


def test_a_database_that_is_read_only_takes_no_trial(db: Path) -> None:
    with Database.open(str(db), read_only=True) as database:
        _, info = database.campaigns()
        with pytest.raises(DatabaseError, match="read-only"):
            database.record(info.id, trial(TrialKey("off", "download-1000", 0, 0), "ok"))


@contextmanager
def listening(site: Site) -> Iterator[Server]:
    with Server("127.0.0.1", 0, site.answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_the_server_answers_reads_alone_and_only_by_its_own_name(site: Site) -> None:
    with listening(site) as server:
        port = server.server_port

        def ask(method: str, host: str) -> tuple[http.client.HTTPResponse, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request(method, "/", headers={"Host": host})
            response = connection.getresponse()
            content = response.read()
            connection.close()
            return response, content

        assert server.url == f"http://127.0.0.1:{port}/"
        for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            response, content = ask("GET", host)
            assert response.status == 200 and b"Campaigns of" in content
        headers = {name.lower(): value for name, value in response.getheaders()}
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "access-control-allow-origin" not in headers
        for host in ("evil.example", f"evil.example:{port}", f"localhost:{port + 1}", "", "[", f"a@b:{port}"):
            assert ask("GET", host)[0].status == 403, host
        assert ask("HEAD", f"localhost:{port}")[1] == b""
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            assert ask(method, f"localhost:{port}")[0].status == 501


def test_of_a_client_that_goes_away_no_traceback_is_told(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, is_gone = threading.Event(), threading.Event()

    def answer(_: str) -> Answer:
        is_asked.set()
        is_gone.wait()
        return Answer("text/plain", b"x" * (1 << 24))  # more than sockets hold

    monkeypatch.setattr(site, "answer", answer)
    with listening(site) as server:
        server.daemon_threads = False  # it waits for its threads at its end
        client = socket.create_connection(("127.0.0.1", server.server_port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % server.server_port)
        is_asked.wait()
        client.close()
        is_gone.set()
    assert capsys.readouterr().err == ""


def test_a_place_that_cannot_be_listened_on_is_refused(fecbench_here: Any, db: Path) -> None:
    result: Done = fecbench_here("serve", "--db", db, "--host", "192.0.2.1")
    assert "--host 192.0.2.1 --port 8077: cannot be listened on" in result.refusal()
    assert "no such database" in fecbench_here("serve", "--db", "absent.sqlite").refusal()
