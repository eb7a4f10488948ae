"""What a browser makes of the page of a report: headless Chromium, driven over WebDriver's HTTP protocol."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any, Self

import pytest

from fecbench.results.analysis.units import size
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, NewCampaign, TrialKey, TrialRecord, Variant, Workload

PHONE = {"width": 390, "height": 844, "pixelRatio": 2.0}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name of an element's identifier (W3C WebDriver, §11)
NASTY = (
    '</script><script>document.title = "owned"</script><img src="http://127.0.0.1:9/leak" onerror="owned()">'
)


class Browser:
    """A session of ChromeDriver. It runs as long as the `with` block."""

    def __init__(self, **emulation: Any) -> None:
        arguments = ["--headless=new", "--disable-dev-shm-usage"]
        arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
        self._capabilities = {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": arguments, **emulation},
        }

    def __enter__(self) -> Self:
        # Chromium leaves folders behind where it finds TMPDIR, and makes sockets: their paths must be short.
        self._folder = tempfile.TemporaryDirectory(prefix="fecbench-", ignore_cleanup_errors=True)
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"TMPDIR": self._folder.name},
        )
        assert self._driver.stdout is not None
        said = ""
        for line in self._driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                break
            said += line
        else:
            raise AssertionError(f"chromedriver did not start: {said}")
        # What it says later must not fill the pipe.
        threading.Thread(target=self._driver.stdout.read, daemon=True).start()
        self._address = f"http://127.0.0.1:{found[1]}/session"
        try:
            session = self._send("POST", "", {"capabilities": {"alwaysMatch": self._capabilities}})
        except BaseException:
            self._stop()
            raise
        self._address += f"/{session['sessionId']}"
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("DELETE", "")
        finally:
            self._stop()

    def _stop(self) -> None:
        self._driver.terminate()
        self._driver.wait()
        self._folder.cleanup()

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._address + path, data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, address: str) -> None:
        """Returns when the page has loaded, and forgets what was logged before."""
        self.log("performance")
        self._send("POST", "/url", {"url": address})

    def run(self, script: str) -> Any:
        return self._send("POST", "/execute/sync", {"script": script, "args": []})

    def press(self, selector: str) -> None:
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        self._send("POST", f"/element/{found[ELEMENT]}/click")

    def print(self) -> bytes:
        """As PDF, on A4."""
        return base64.b64decode(self._send("POST", "/print", {"page": {"width": 21.0, "height": 29.7}}))

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since it was last asked for."""
        return list(self._send("POST", "/se/log", {"type": kind}))

    def requested(self) -> list[str]:
        """The addresses of all requests since the page was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


needs_chromium = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="Chromium is missing: apt-get install chromium chromium-driver",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with all that reports can have: rules, calibration, long names, failed and replaced trials."""
    folder = tmp_path_factory.mktemp("page")
    sizes, labels = (10_000, 200_000), ("off", "a variant with a name that is long and goes on and on")
    points = [
        {"bandwidth_mbps": 0.5 + n % 7, "owd_ms": 5.0 + 7 * (n % 5), "loss.p": 0.01 + 0.001 * n}
        for n in range(32)
    ]
    line = {"name": "delay error at 10 ms, median", "value": 61.5, "bound": 300.0, "unit": "µs", "good": True}
    calibration = {"kind": "brief", "at": "2026-01-01T00:00", "backend": "wire", "good": True}
    with Database.open(str(folder / "page.sqlite"), create=True) as database:
        campaign = database.create_campaign(
            NewCampaign(
                name="page",
                design_text='name = "page"\n# a line that is long: ' + "0123456789" * 20 + f"\n# {NASTY}\n",
                seed=1,
                provenance={
                    "calibration": [calibration | {"measurements": [line]}],
                    "binaries": {"a/path/to/a/program": "ab" * 32},
                    "link": "wire",
                },
                points=points,
                variants=[
                    Variant(label=label, implementation="x", options={"n": n}, baseline=n == 0)
                    for n, label in enumerate(labels)
                ],
                workloads=[
                    Workload(
                        label=f"download of {size(each)}", name="download", parameters={"size_bytes": each}
                    )
                    for each in sizes
                ],
                repetitions=1,
                statistic="median",
                title=f"Does FEC help? {NASTY}",
            )
        )
        for variant, (n, point), each in product(labels, enumerate(points), sizes):
            helps = variant != "off" and point["loss.p"] > 0.025 and each == 10_000
            key = TrialKey(variant, f"download of {size(each)}", n, 0)
            dct_s = (0.1 + each / 1e5) * (0.6 if helps else 1.0) * (1 + 0.01 * (n % 3))
            record_one(database, campaign.id, key, dct_s)
        return report(database, campaign, folder / "report").html


def record_one(database: Database, campaign_id: int, key: TrialKey, dct_s: float) -> None:
    states = {0: ["failed"], 1: ["invalid", "ok"]}.get(key.point, ["ok"])
    for state in states:
        database.record(
            campaign_id,
            TrialRecord(
                key=key,
                state=state,
                reason="" if state == "ok" else f"{NASTY} {'a-word-without-a-place-to-break' * 4}",
                started_at="2026-01-02T03:04:05+00:00",
                duration_s=1.0,
                metrics={"client": {"dct_s": dct_s}},
            ),
        )


@pytest.fixture(scope="module")
def served(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The page's address on a server of our own, and the paths that were asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.read_bytes())

        def log_message(self, *_: object) -> None:
            """Nothing: the paths are kept."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/report.html", asked
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.open(page.as_uri())
    return browser


@needs_chromium
def test_nothing_but_the_page_is_ever_asked_for(browser: Browser, served: tuple[str, list[str]]) -> None:
    address, asked = served
    browser.log("browser")
    browser.open(address)
    browser.press("figure button")
    requested = browser.requested()
    assert requested[0] == address
    assert all(each.startswith("data:") for each in requested[1:])
    assert len(requested) > 3  # the figures: what is asked for is seen
    assert asked == ["/report.html"]
    assert browser.log("browser") == []


@needs_chromium
def test_no_script_but_the_page_s_own_runs(opened: Browser) -> None:
    assert opened.run("return document.title").startswith("page: Does FEC help? </script>")
    assert opened.run("return document.scripts.length") == 1
    opened.run(
        "const other = document.createElement('script'); other.textContent = 'document.title = 1';"
        "document.body.append(other);"
    )
    assert opened.run("return document.title") != "1"


@needs_chromium
@pytest.mark.parametrize("unfolded", [False, True])
def test_a_phone_never_scrolls_sideways(page: Path, unfolded: bool) -> None:
    with Browser(mobileEmulation={"deviceMetrics": PHONE}) as phone:
        phone.open(page.as_uri())
        if unfolded:
            phone.run("for (const each of document.querySelectorAll('details')) each.open = true")
        assert phone.run("return window.innerWidth") == PHONE["width"]
        assert phone.run("return document.documentElement.scrollWidth") <= PHONE["width"]


@needs_chromium
def test_a_press_on_a_head_sorts_a_table_and_another_one_turns_it_round(opened: Browser) -> None:
    opened.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    column = (
        "const table = [...document.querySelectorAll('table')].find(each => each.tHead.textContent.includes"
        "('bandwidth_mbps')); const head = [...table.tHead.rows[0].cells].find(each => each.textContent =="
        " 'bandwidth_mbps'); head.id = 'sorted';"
        "return [...table.tBodies[0].rows].map(row => parseFloat(row.cells[head.cellIndex].textContent))"
    )
    before = opened.run(column)
    opened.press("#sorted button")
    rising = opened.run(column)
    opened.press("#sorted button")
    assert before != sorted(before)
    assert rising == sorted(before)
    assert opened.run(column) == sorted(before, reverse=True)
    assert opened.run("return document.querySelectorAll('[aria-sort]').length") == 1


@needs_chromium
def test_a_figure_opens_in_its_own_size_and_closes(opened: Browser) -> None:
    opened.press("figure button")
    sizes = "const image = document.querySelector('dialog img'); return [image.width, image.naturalWidth]"
    shown, own = opened.run(sizes)
    assert shown == own
    opened.press("dialog")
    assert opened.run("return document.querySelector('dialog').open") is False


@needs_chromium
def test_what_is_folded_on_the_screen_is_printed(opened: Browser) -> None:
    folded = "return document.querySelectorAll('details:not([open])').length"
    opened.run(
        "window.addEventListener('beforeprint', () => { window.foldedInPrint ="
        " document.querySelectorAll('details:not([open])').length; })"
    )
    before = opened.run(folded)
    assert before > 0
    assert opened.print().startswith(b"%PDF")
    assert opened.run("return window.foldedInPrint") == 0
    assert opened.run(folded) == before


def test_of_many_points_the_page_lists_a_thousand_and_says_where_all_are(
    filled: Callable[..., tuple[Database, CampaignInfo]], tmp_path: Path
) -> None:
    database, campaign = filled({}, points=[{"owd_ms": n + 0.5} for n in range(1002)])
    page = report(database, campaign, tmp_path).html.read_text()
    assert '<td class="number">999.5</td>' in page
    assert "1000.5" not in page
    assert "the first 1000 of 1002 points. All: fecbench export --table points." in page
