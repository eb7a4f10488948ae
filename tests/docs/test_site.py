"""The guide's site: every link inside it leads somewhere, and a browser asks no other host for anything."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from fecbench.checkout import REPOSITORY
from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.browsing import launched, needs_chromium
from tests.support.campaigns import new_campaign, trial, variants

REPORT = "reports/planted/report.html"
PHONE = 400
pytestmark = pytest.mark.timeout(900)  # on a busy machine, as with the guide's pages


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with a report of a campaign of four trials, and notebooks that were not run."""
    folder = tmp_path_factory.mktemp("site")
    database = folder / "planted.sqlite"
    with Database.open(str(database), create=True) as opened:
        points = [{"owd_ms": 5.0}, {"owd_ms": 10.0}]
        campaign = opened.create_campaign(new_campaign(points=points, variants=variants("off")))
        for variant, point in product(("off",), range(len(points))):
            key = TrialKey(variant, "download-1", point, 0)
            opened.record(campaign.id, trial(key, metrics={"client": {"dct_s": 1.0 + point}}))
    program = [sys.executable, REPOSITORY / "docs" / "site" / "build.py", folder, "--without-outputs"]
    result = subprocess.run([*program, f"planted={database}"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    return folder / "html"


@pytest.fixture(scope="module")
def served(built: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


class Named(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.loads = set[str](), set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attributes if value}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        if "href" in values:
            (self.links if tag == "a" else self.loads).add(values["href"])
        if "src" in values:
            self.loads.add(values["src"])


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[Path, Named]:
    """The pages except reports, and except templates of the theme."""
    files = [path for path in built.rglob("*.html") if not {"reports", "_static"} & set(path.parts)]
    named = {path: Named(path.read_text()) for path in files}
    assert len(named) > 50
    return named


def test_every_page_of_the_guide_is_in_the_site(pages: dict[Path, Named], built: Path) -> None:
    for page in (
        "README.md",
        *(REPOSITORY / "docs").glob("*.md"),
        *(REPOSITORY / "notebooks").glob("*.ipynb"),
    ):
        name = (REPOSITORY / page).relative_to(REPOSITORY).with_suffix(".html")
        assert built / name in pages


def test_every_link_inside_the_site_leads_somewhere(pages: dict[Path, Named]) -> None:
    broken = []
    for page, named in pages.items():
        for link in named.links | named.loads:
            parts = urlsplit(link)
            if parts.scheme or link == "#":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            whole = not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].ids
            if not (target.exists() and whole):
                broken.append((page.name, link))
    assert broken == []


def test_no_page_loads_anything_of_another_host(pages: dict[Path, Named], built: Path) -> None:
    loaded = {link for named in pages.values() for link in named.loads}
    assert {link for link in loaded if urlsplit(link).scheme not in ("", "data") or link[:2] == "//"} == set()
    styles = "".join(path.read_text() for path in built.rglob("*.css"))
    assert re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*", styles) == []


@needs_chromium
def test_a_browser_asks_the_site_alone_and_finds_pages_by_their_words(served: str, browser: Browser) -> None:
    requested: list[str] = []
    with browser.new_context() as context:
        tab = context.new_page()
        tab.on("request", lambda request: requested.append(request.url))
        for page in ("index.html", "docs/which-fec.html", "notebooks/which-fec.html", REPORT):
            tab.goto(f"{served}/{page}", wait_until="networkidle")
        tab.goto(f"{served}/search.html?q=Gilbert")
        expect(tab.locator("#search-results a").first).to_be_visible()
        assert len(requested) > 20
        assert {url for url in requested if not url.startswith((f"{served}/", "data:", "blob:"))} == set()


@needs_chromium
def test_the_search_needs_no_server(built: Path, browser: Browser) -> None:
    with browser.new_context() as context:
        tab = context.new_page()
        tab.goto(f"{(built / 'search.html').as_uri()}?q=jitter")
        expect(tab.locator("#search-results a").first).to_be_visible()


@needs_chromium
def test_no_page_is_wider_than_the_screen_of_a_phone(served: str, browser: Browser) -> None:
    with browser.new_context(viewport={"width": PHONE, "height": 900}) as context:
        tab = context.new_page()
        for page in (
            "index",
            "docs/losses-of-time",
            "docs/what-a-database-holds",
            "api",
            "notebooks/rquic2021",
        ):
            tab.goto(f"{served}/{page}.html")
            assert tab.evaluate("document.documentElement.scrollWidth") == PHONE, page
