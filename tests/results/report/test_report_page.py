"""What a browser makes of the page of a report: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright

from fecbench.results.analysis.units import size
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo, NewCampaign, TrialKey, TrialRecord, Variant, Workload

CHROMIUM = shutil.which("chromium")
PHONE: ViewportSize = {"width": 390, "height": 844}
NASTY = (
    '</script><script>document.title = "owned"</script><img src="http://127.0.0.1:9/leak" onerror="owned()">'
)


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")


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
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0)


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """An empty page of a screen's size."""
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def opened(tab: Page, page: Path) -> Page:
    tab.goto(page.as_uri())
    return tab


@needs_chromium
def test_nothing_but_the_page_is_requested(tab: Page, served: tuple[str, list[str]]) -> None:
    address, asked = served
    requested: list[str] = []
    logged: list[str] = []
    network = tab.context.new_cdp_session(tab)  # Playwright's own event leaves out addresses that are data
    network.on("Network.requestWillBeSent", lambda event: requested.append(event["request"]["url"]))
    network.send("Network.enable")
    tab.on("console", lambda message: logged.append(message.text))
    tab.on("pageerror", lambda error: logged.append(error.message))
    tab.goto(address)
    tab.click("figure button >> nth=0")
    assert requested[0] == address
    assert all(url.startswith("data:") for url in requested[1:])
    assert len(requested) > 3  # the figures: requests are seen
    assert asked == ["/report.html"]
    assert logged == []


@needs_chromium
def test_no_script_but_the_page_s_own_runs(opened: Page) -> None:
    assert opened.title().startswith("page: Does FEC help? </script>")
    assert opened.locator("script").count() == 1
    opened.evaluate(
        "() => { const other = document.createElement('script'); other.textContent = 'document.title = 1';"
        " document.body.append(other); }"
    )
    assert opened.title() != "1"


@needs_chromium
@pytest.mark.parametrize("unfolded", [False, True])
def test_a_phone_never_scrolls_sideways(browser: Browser, page: Path, unfolded: bool) -> None:
    with browser.new_context(viewport=PHONE, device_scale_factor=2, is_mobile=True) as context:
        phone = context.new_page()
        phone.goto(page.as_uri())
        if unfolded:
            unfold(phone)
        assert phone.evaluate("window.innerWidth") == PHONE["width"]
        assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def unfold(tab: Page) -> None:
    tab.evaluate("document.querySelectorAll('details').forEach(folded => folded.open = true)")


@needs_chromium
def test_the_head_of_a_table_sorts_it_up_and_down(opened: Page) -> None:
    unfold(opened)
    table = opened.locator("table", has=opened.locator("th", has_text="bandwidth_mbps"))
    heads = table.locator("thead th").all_inner_texts()
    cells = table.locator(f"tbody td:nth-child({heads.index('bandwidth_mbps') + 1})")
    head = table.get_by_role("button", name="bandwidth_mbps")
    before = column(cells)
    head.click()
    rising = column(cells)
    head.click()
    assert before != sorted(before)
    assert rising == sorted(before)
    assert column(cells) == sorted(before, reverse=True)
    assert opened.locator("[aria-sort]").count() == 1


def column(cells: Locator) -> list[float]:
    return [float(text) for text in cells.all_inner_texts()]


@needs_chromium
def test_a_figure_opens_in_its_own_size_and_closes(opened: Page) -> None:
    opened.click("figure button >> nth=0")
    shown, own = opened.locator("dialog img").evaluate("image => [image.width, image.naturalWidth]")
    assert shown == own
    opened.click("dialog")
    assert opened.locator("dialog[open]").count() == 0


@needs_chromium
def test_what_is_folded_on_the_screen_is_printed(opened: Page) -> None:
    folded = opened.locator("details:not([open])")
    opened.evaluate(
        "window.addEventListener('beforeprint', () => { window.foldedInPrint ="
        " document.querySelectorAll('details:not([open])').length; })"
    )
    before = folded.count()
    assert before > 0
    assert opened.pdf(format="A4").startswith(b"%PDF")
    assert opened.evaluate("window.foldedInPrint") == 0
    assert folded.count() == before


def test_of_many_points_the_page_lists_a_thousand_and_says_where_all_are(
    filled: Callable[..., tuple[Database, CampaignInfo]], tmp_path: Path
) -> None:
    database, campaign = filled({}, points=[{"owd_ms": n + 0.5} for n in range(1002)])
    page = report(database, campaign, tmp_path).html.read_text()
    assert '<td class="number">999.5</td>' in page
    assert "1000.5" not in page
    assert "the first 1000 of 1002 points. All: fecbench export --table points." in page
