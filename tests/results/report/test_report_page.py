"""The page of a report in a browser: Debian's Chromium, driven by Playwright."""

import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations, product
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from fecbench.results.metrics.units import size
from fecbench.results.report import exploring, maps, tables
from fecbench.results.report.report import report
from fecbench.results.store.database import Database
from fecbench.results.store.records import (
    CampaignInfo,
    State,
    TrialKey,
    Variant,
)
from tests.results.pages import page_of
from tests.support.browsing import PATIENCE_MS, grave, launched, needs_chromium
from tests.support.campaigns import new_campaign, trial, variants, workload

PHONE: ViewportSize = {"width": 390, "height": 844}
SCREEN: ViewportSize = {"width": 1200, "height": 1000}
NASTY = (
    '</script><script>document.title = "owned"</script><img src="http://127.0.0.1:9/leak" onerror="owned()">'
)
DRAWN = "#explore-factors .chart:last-child svg .mark-symbol path"
"""A mark of the chart that is drawn last."""
LEAST_CONTRAST = """() => {
  const channels = text => text.match(/[0-9.]+/g).slice(0, 3).map(value => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const weights = [0.2126, 0.7152, 0.0722];
  const light = text => channels(text).reduce((sum, value, n) => sum + value * weights[n], 0);
  const behind = node => {
    for (let each = node; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (!color.endsWith(", 0)")) return color;
    }
  };
  const seen = [...document.querySelectorAll("h1, h2, p, li, td, th, summary, .bar span, a")].filter(
    node => node.checkVisibility() && node.textContent.trim() && !node.classList.contains("undecided"));
  return Math.min(...seen.map(node => {
    const [low, high] = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
}"""
"""Script for the least contrast of all text on the first screen."""


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
            new_campaign(
                "page",
                design_text='name = "page"\n# a line that is long: ' + "0123456789" * 20 + f"\n# {NASTY}\n",
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
                    workload(f"download of {size(size_of_screen)}", size_bytes=size_of_screen)
                    for size_of_screen in sizes
                ],
                title=f"Does FEC help? {NASTY}",
            )
        )
        for variant, (n, point), size_of_screen in product(labels, enumerate(points), sizes):
            helps = variant != "off" and point["loss.p"] > 0.025 and size_of_screen == 10_000
            key = TrialKey(variant, f"download of {size(size_of_screen)}", n, 0)
            dct_s = (0.1 + size_of_screen / 1e5) * (0.6 if helps else 1.0) * (1 + 0.01 * (n % 3))
            record_one(database, campaign.id, key, dct_s)
        return report(database, campaign, folder / "report").html


def record_one(database: Database, campaign_id: int, key: TrialKey, dct_s: float) -> None:
    states = {0: ["failed"], 1: ["invalid", "ok"]}.get(key.point, ["ok"])
    for state in states:
        database.record(
            campaign_id,
            trial(
                key,
                state,
                "" if state == "ok" else f"{NASTY} {'a-word-without-a-place-to-break' * 4}",
                metrics={"client": {"dct_s": dct_s}},
            ),
        )


@pytest.fixture(scope="module")
def served(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The page's address on a server of our own, and the paths that were asked of it."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.read_bytes())

        def log_message(self, *_: object) -> None:
            """Print nothing: the paths are recorded."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/report.html", paths
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """An empty page of a screen's size."""
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()


@pytest.fixture
def opened(tab: Page, page: Path) -> Page:
    tab.goto(page.as_uri())
    return tab


@needs_chromium
def test_nothing_but_the_page_is_requested(tab: Page, served: tuple[str, list[str]]) -> None:
    address, paths = served
    requested: list[str] = []
    logged: list[str] = []
    network = tab.context.new_cdp_session(tab)  # Playwright's own event leaves out addresses that are data
    network.on("Network.requestWillBeSent", lambda event: requested.append(event["request"]["url"]))
    network.send("Network.enable")
    tab.on("console", lambda message: logged.append(message.text))
    tab.on("pageerror", lambda error: logged.append(error.message))
    tab.goto(address)
    unfold(tab)
    tab.wait_for_selector(DRAWN)
    tab.locator("figure button").first.click()
    assert requested[0] == address
    assert all(url.startswith("data:") for url in requested[1:])
    assert len(requested) > 3  # the figures: requests are seen
    assert paths == ["/report.html"]
    assert logged == []


@needs_chromium
def test_no_script_but_the_page_s_own_runs(opened: Page) -> None:
    assert opened.title().startswith("page: Does FEC help? </script>")
    assert opened.evaluate("window.owned") is None
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
    table = opened.locator("table", has=opened.locator("th", has_text="bandwidth (Mbit/s)"))
    heads = table.locator("thead th").all_inner_texts()
    cells = table.locator(f"tbody td:nth-child({heads.index('bandwidth (Mbit/s)') + 1})")
    head = table.get_by_role("button", name="bandwidth (Mbit/s)")
    before = column(cells)
    head.click()
    rising = column(cells)
    head.click()
    assert before != sorted(before)
    assert rising == sorted(before)
    assert column(cells) == sorted(before, reverse=True)
    assert opened.locator("[aria-sort]").count() == 1


@needs_chromium
@pytest.mark.parametrize(
    "rising",
    [
        ["900 B", "64 kB", "1 MB", "2 GB", "–"],
        ["-548 s [-690, -365]", "-80 ms [-98, -62]", "54 ms [34, 74]", "1.2 s [0.9, 1.5]", "–"],
        ["0.95 [0.83, 1.02]", "12.35 (no interval)", "∞ (no interval)", "–"],
        ["998 packets", "1,234 packets", "95,367 packets"],
        ["3 (1)", "12 (0)", "198 / 200", "1000 of 1024"],
    ],
)
def test_numbers_are_sorted_by_their_size_whatever_their_units(opened: Page, rising: list[str]) -> None:
    unfold(opened)
    table = opened.locator("table", has=opened.locator("th", has_text="bandwidth (Mbit/s)"))
    written = [rising[-1], *rising[:-1]]
    table.evaluate(
        """(table, written) => [...table.tBodies[0].rows].forEach((row, n) => {
            if (n >= written.length) row.remove();
            else row.cells[1].textContent = written[n];
        })""",
        written,
    )
    cells, head = table.locator("tbody td:nth-child(2)"), table.locator("thead button").nth(1)
    head.click()
    assert cells.all_inner_texts() == rising
    head.click()
    absent = rising.count("–")
    falling = rising[: len(rising) - absent][::-1]
    assert cells.all_inner_texts() == falling + ["–"] * absent


def column(cells: Locator) -> list[float]:
    return [float(text) for text in cells.all_inner_texts()]


@needs_chromium
def test_a_figure_opens_in_its_own_size_and_closes(opened: Page) -> None:
    unfold(opened)
    opened.click("figure button >> nth=0")
    output, own = opened.locator("dialog img").evaluate("image => [image.width, image.naturalWidth]")
    assert output == own
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
    for_screens = opened.locator(
        "details:is(.unprinted, .unprinted *, #explore, #explore *):not([open])"
    ).count()
    assert opened.evaluate("window.foldedInPrint") == for_screens < before
    assert folded.count() == before


@needs_chromium
def test_the_first_screen_has_the_question_the_answer_the_picture_and_how_far_to_trust_it(
    opened: Page, page: Path
) -> None:
    opened.set_viewport_size(SCREEN)
    opened.screenshot(path=page.parent / "first-screen.png")  # to be looked at
    for what in ("h1", ".answers li", ".trust", ".picture .ticks"):
        place = opened.locator(what).first.bounding_box()
        assert place is not None
        assert place["y"] + place["height"] <= SCREEN["height"], what
    assert opened.locator("details.part[open]").count() == 0


@needs_chromium
def test_no_table_is_wider_than_the_page(opened: Page) -> None:
    opened.set_viewport_size(SCREEN)
    unfold(opened)
    wide = opened.locator(".scroll").evaluate_all(
        "places => places.filter(place => place.scrollWidth > place.clientWidth)"
        ".map(place => place.innerText)"
    )
    assert wide == []


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(opened: Page, scheme: Literal["light", "dark"]) -> None:
    opened.emulate_media(color_scheme=scheme)
    assert opened.evaluate(LEAST_CONTRAST) >= 4.5  # WCAG 2.2, 1.4.3


@pytest.fixture
def explored(opened: Page) -> Page:
    """A page with the interactive charts drawn."""
    opened.set_viewport_size(SCREEN)
    opened.click("#explore > summary")
    opened.wait_for_selector(DRAWN)
    return opened


def cases_of(tab: Page) -> list[int]:
    """The cases that are left of the arm, and of them those with each verdict."""
    cells = tab.locator("#explore-counts tbody tr td.number").all_inner_texts()
    return [int(cell) for cell in cells[:5]]


@needs_chromium
def test_filters_change_the_counts_and_the_marks(explored: Page) -> None:
    every = cases_of(explored)
    assert every[0] == 2 * 31  # one of 32 networks failed with both sizes
    explored.get_by_role("checkbox", name="10 kB").uncheck()
    assert cases_of(explored)[0] == 31
    explored.get_by_label("loss.p from").fill("0.0255")
    explored.get_by_label("loss.p from").press("Enter")
    assert cases_of(explored)[0] == 16
    marks = explored.locator("#explore-ranks svg .mark-symbol path")
    expect(marks).to_have_count(16)
    explored.get_by_label("all of loss.p").click()
    explored.get_by_role("checkbox", name="10 kB").check()
    assert cases_of(explored) == every


@needs_chromium
def test_a_brush_over_a_factor_filters_the_other_charts(explored: Page) -> None:
    chart = explored.locator("#explore-factors .chart").first
    chart.scroll_into_view_if_needed()
    place = chart.locator("svg .background").first.bounding_box()
    assert place is not None
    middle = place["y"] + 8
    explored.mouse.move(place["x"] + place["width"] / 2, middle)
    explored.mouse.down()
    explored.mouse.move(place["x"] + place["width"] - 1, middle, steps=3)
    explored.mouse.up()
    marks = explored.locator("#explore-ranks svg .mark-symbol path")
    expect(marks).not_to_have_count(2 * 31)
    assert 0 < cases_of(explored)[0] < 2 * 31
    assert chart.locator("svg .mark-symbol path").count() >= 2 * 31  # of its own factor it shows all
    ends = ",".join(field.input_value() for field in chart_inputs(explored))
    assert f"f0={ends}" in unquote(explored.url)  # what is kept is what is shown
    chart.dblclick(position={"x": 100, "y": 20})
    expect(marks).to_have_count(2 * 31)


def chart_inputs(tab: Page) -> list[Locator]:
    """The ends of the range of the first factor."""
    return tab.locator("#explore-controls fieldset:has(input[type=number])").first.locator("input").all()


@needs_chromium
@pytest.mark.usefixtures("unmade")
def test_a_chart_that_draws_some_cases_says_so_and_draws_each_value_of_a_factor(
    tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second network of a grid has the same loss."""
    script = (exploring._FOLDER / "explore.js").read_text(encoding="utf-8")
    (tmp_path / "explore.js").write_text(script.replace("MOST_DRAWN = 3000", "MOST_DRAWN = 14"))
    monkeypatch.setattr(exploring, "_FOLDER", tmp_path)
    monkeypatch.setattr(maps, "_MOST_MARKS", 14)
    points = [{"loss.p": loss, "owd_ms": owd_ms} for owd_ms in range(5, 19) for loss in (0.01, 0.03)]
    with Database.open(str(tmp_path / "page.sqlite"), create=True) as database:
        campaign = database.create_campaign(new_campaign(points=points, variants=variants("off", "fec")))
        keys = [TrialKey(label, "download-1", n, 0) for label in ("off", "fec") for n in range(len(points))]
        database.record_all(campaign.id, [trial(key, metrics={"client": {"dct_s": 1.0}}) for key in keys])
        tab.goto(report(database, campaign, tmp_path / "report").html.as_uri())
    tab.click("#explore > summary")
    tab.wait_for_selector(DRAWN)
    expect(tab.locator("#explore-drawn")).to_contain_text("more than 14 cases draws 14 of them")
    expect(tab.locator(".map figcaption, figcaption").first).to_contain_text("14 of 28 networks are drawn")
    of_loss = "#explore-factors .chart:first-child svg .mark-symbol path"
    for marks in (of_loss, ".map path[class^=m-]"):
        places = tab.locator(marks).evaluate_all(
            "marks => marks.map(mark => mark.getAttribute('transform').match(/[0-9.]+/)[0])"
        )
        assert len(places) == 14 and len(set(places)) == 2


RATIOS: list[tuple[float, float | None, float | None]] = [
    (0.9512, 0.8312, 1.0212),
    (1.0004, 0.9981, 1.0027),
    (1.5, 0.9, math.inf),
    (12.3456, 12.3441, 12.3471),
    (123.456, 122.1, 124.8),
    (123.456, None, None),
    (1234.4, 1200.0, 1300.0),
    (math.inf, None, None),
]
"""Ratios with their intervals, the least ratio first."""


@needs_chromium
def test_ratios_have_the_digits_that_the_tables_give_them(tab: Page, page: Path, tmp_path: Path) -> None:
    before, data, after = re.split(
        '(?<=id="explore-data">)(.*?)(?=</script>)', page.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    document = json.loads(data)
    cases = document["metrics"][0]
    for name, values in zip(("ratio", "low", "high"), zip(*RATIOS, strict=True), strict=True):
        cases[name] = [exploring._result(math.nan if value is None else value) for value in values]
    cases.update({name: cases[name][: len(RATIOS)] for name in ("point", "variant", "workload", "verdict")})
    (tmp_path / "page.html").write_text(before + json.dumps(document) + after, encoding="utf-8")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.click("#explore > summary")
    tab.wait_for_selector(DRAWN)
    tab.locator("#explore-ranks").focus()
    for ratio in RATIOS:
        tab.keyboard.press("ArrowRight")
        text = tables.ratio(*ratio).removesuffix(" (no interval)")
        expect(tab.locator("#explore-chosen")).to_contain_text(f"Ratio {text}: ")


@needs_chromium
@pytest.mark.usefixtures("unmade")
def test_pairs_have_both_trials_of_a_repetition_and_the_ratio_of_what_was_measured(
    tab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are shown in four digits, and divided in more. The baseline has no first repetition."""
    monkeypatch.setattr(exploring, "_MOST_TRIALS", 4 * 2)
    with Database.open(str(tmp_path / "page.sqlite"), create=True) as database:
        campaign = database.create_campaign(
            new_campaign(
                points=[{"owd_ms": 5.0}, {"owd_ms": 9.0}], variants=variants("off", "fec"), repetitions=3
            )
        )
        for label, point, repetition in product(("off", "fec"), (0, 1), range(3)):
            if (label, repetition) != ("off", 0):
                dct_s = {"off": 1.00044, "fec": 1.00156}[label]
                key = TrialKey(label, "download-1", point, repetition)
                database.record(campaign.id, trial(key, metrics={"client": {"dct_s": dct_s}}))
        tab.goto(report(database, campaign, tmp_path / "report").html.as_uri())
    tab.click("#explore > summary")
    tab.wait_for_selector(DRAWN)
    tab.locator("#explore-ranks").focus()
    tab.keyboard.press("Home")
    rows = tab.locator("#explore-chosen tbody tr").all()
    cells = [row.locator("td.number").all_inner_texts() for row in rows]
    assert cells == [["1", "1", "1.002", "1.001"], ["0", "–", "1.002", "–"]]


@needs_chromium
def test_the_keyboard_alone_shows_a_case_its_trials_and_the_command(explored: Page) -> None:
    explored.locator("#explore-ranks").focus()
    explored.keyboard.press("ArrowRight")
    choice = explored.locator("#explore-chosen")
    expect(choice).to_contain_text("10 kB, network")
    expect(choice).to_contain_text("Ratio 0.60")
    ratios = [float(cell) for cell in choice.locator("tbody td:nth-child(4)").all_inner_texts()]
    assert ratios and ratios == sorted(ratios, reverse=True)
    explored.keyboard.press("Tab")  # to the first pair
    pair = explored.evaluate("document.activeElement.innerText")
    explored.keyboard.press("Enter")
    assert f"fecbench {pair} --db page.sqlite" in choice.locator("pre").inner_text()
    row = choice.locator("tbody tr", has_text=pair)
    baseline, arm, ratio = (float(text) for text in row.locator("td.number").all_inner_texts()[1:4])
    assert ratio == pytest.approx(arm / baseline, rel=0.01)


@needs_chromium
@pytest.mark.usefixtures("unmade")
def test_pairs_are_named_and_ordered_by_what_their_own_workload_compares(tab: Page, tmp_path: Path) -> None:
    """The worst pair comes first: of times the one in which the arm timed out, of shares the least one."""
    share = "messages.on_time_ratio_50ms"
    values = {"off": (1.0, 0.8, 1.0), "fec": (0.9, 0.4, 0.5)}
    with Database.open(str(tmp_path / "page.sqlite"), create=True) as database:
        campaign = database.create_campaign(
            new_campaign(
                points=[{"owd_ms": 5.0}, {"owd_ms": 9.0}],
                variants=variants("off", "fec"),
                workloads=[workload("times"), {**workload("shares", "messages"), "metric": share}],
                repetitions=3,
            )
        )
        for label, point, (repetition, value) in product(values, (0, 1), enumerate(values["off"])):
            state: State = "timeout" if (label, repetition) == ("fec", 2) else "ok"
            of_share = {"messages": {"on_time_ratio_50ms": values[label][repetition]}}
            of_time = {"client": {"dct_s": value}}
            for name, at, measured in (("times", state, of_time), ("shares", "ok", of_share)):
                key = TrialKey(label, name, point, repetition)
                database.record(campaign.id, trial(key, at, metrics=measured))
        tab.goto(report(database, campaign, tmp_path / "report").html.as_uri())
    tab.click("#explore > summary")
    tab.wait_for_selector(DRAWN)
    for metric, name, order in (("0", "download completion time", "201"), ("1", "share of messages", "120")):
        tab.get_by_label("metric", exact=True).select_option(metric)
        tab.locator("#explore-ranks").focus()
        tab.keyboard.press("Home")
        panel = tab.locator("#explore-chosen")
        expect(panel.locator("caption")).to_contain_text(name)
        assert "".join(panel.locator("tbody td:first-child").all_inner_texts()) == order


@needs_chromium
def test_a_click_on_a_mark_shows_its_case(explored: Page) -> None:
    explored.locator("#explore-ranks svg .mark-symbol path").first.click(force=True)
    expect(explored.locator("#explore-chosen")).to_contain_text("fecbench diff")
    explored.locator("#explore-ranks svg .mark-symbol path").nth(5).hover(force=True)
    expect(explored.locator("#vg-tooltip-element")).to_contain_text("network")


@needs_chromium
@pytest.mark.parametrize("viewport", [SCREEN, PHONE])
def test_labels_of_ticks_stand_apart(explored: Page, page: Path, viewport: ViewportSize) -> None:
    explored.set_viewport_size(viewport)
    explored.screenshot(path=page.parent / f"explorer-{viewport['width']}.png", full_page=True)
    for axis in explored.locator("svg .role-axis-label").all():
        places = axis.locator("text").evaluate_all(
            "texts => texts.filter(text => getComputedStyle(text).opacity > 0 && text.textContent)"
            ".map(text => text.getBoundingClientRect())"
            ".map(({left, right, top, bottom}) => [left, right, top, bottom])"
        )
        for (left_edge, right, top, bottom), other in combinations(places, 2):
            apart = left_edge >= other[1] or right <= other[0] or top >= other[3] or bottom <= other[2]
            assert apart, axis.inner_text()


@needs_chromium
def test_the_first_screen_says_in_which_networks_in_a_sentence_and_on_a_map(opened: Page) -> None:
    (tied,) = opened.locator(".answers .rule").all_inner_texts()
    rule = tied.replace("\u00a0", " ")
    assert re.search(r"helps where .*loss ≥ 2\.\d+ %.*\(40\.0 % less time \[40\.0, 40\.0\]\)", rule)
    maps = opened.locator(".map svg")
    assert maps.count() == 2  # one a workload
    marks = maps.first.locator("path[class^=m-]").count()
    name = maps.first.get_attribute("aria-label") or ""
    assert marks == sum(int(count) for count in re.findall(r"(?:in|difference in) (\d+)", name)) == 31


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_critical_or_serious(
    browser: Browser, page: Path, scheme: Literal["light", "dark"]
) -> None:
    with browser.new_context(viewport=SCREEN, color_scheme=scheme, bypass_csp=True) as context:
        context.set_default_timeout(PATIENCE_MS)
        tab = context.new_page()
        tab.goto(page.as_uri())
        unfold(tab)
        tab.wait_for_selector(DRAWN)
        assert grave(tab) == []


@needs_chromium
def test_the_address_keeps_what_is_chosen(explored: Page, browser: Browser) -> None:
    explored.get_by_role("checkbox", name="10 kB").uncheck()
    explored.get_by_label("loss.p from").fill("0.0255")
    explored.get_by_label("loss.p from").press("Enter")
    cases, address = cases_of(explored), explored.url
    assert cases[0] == 16
    with browser.new_context(viewport=SCREEN) as context:
        context.set_default_timeout(PATIENCE_MS)
        other = context.new_page()
        other.goto(address)
        other.wait_for_selector(DRAWN)
        assert cases_of(other) == cases
        assert not other.get_by_role("checkbox", name="10 kB").is_checked()
        assert other.get_by_label("loss.p from").input_value() == "0.0255"


@needs_chromium
def test_what_is_shown_is_saved_as_data_and_as_a_chart(explored: Page) -> None:
    explored.get_by_role("checkbox", name="10 kB").uncheck()
    files = {}
    for form in ("data (CSV)", "chart (SVG)", "chart (PNG)"):
        with explored.expect_download() as download:
            explored.get_by_role("button", name=form).click()
        files[download.value.suggested_filename] = download.value.path().read_bytes()
    heads, *rows = files["networks.csv"].decode().splitlines()
    assert heads.startswith("variant,baseline,workload,network,")
    assert heads.endswith("ratio,low,high,verdict,metric")
    assert all(row.endswith(",client.dct_s") for row in rows)
    assert len(rows) == 31
    assert b"<svg" in files["networks.svg"]
    assert files["networks.png"].startswith(b"\x89PNG")


@needs_chromium
def test_the_data_have_one_column_of_a_name(tab: Page, page: Path, tmp_path: Path) -> None:
    """A design may name a factor as a column."""
    source = page.read_text(encoding="utf-8").replace('"label":"loss.p"', '"label":"network"')
    (tmp_path / "page.html").write_text(source, encoding="utf-8")
    tab.goto((tmp_path / "page.html").as_uri())
    tab.click("#explore > summary")
    tab.wait_for_selector(DRAWN)
    with tab.expect_download() as download:
        tab.get_by_role("button", name="data (CSV)").click()
    heads = download.value.path().read_text(encoding="utf-8").partition("\n")[0].split(",")
    assert heads.count("network") == heads.count("factor network") == 1


@needs_chromium
def test_a_button_copies_a_command(opened: Page) -> None:
    unfold(opened)
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    command = opened.locator("#repeat .copied").first
    command.get_by_role("button", name="copy").click()
    expect(command.get_by_role("button")).to_have_text("copied")
    assert opened.evaluate("navigator.clipboard.readText()") == command.locator("pre").text_content()


@needs_chromium
def test_a_print_has_its_figures_first_and_no_provenance(opened: Page) -> None:
    pages = len(re.findall(rb"/Type\s*/Page\b", opened.pdf(format="A4")))
    assert pages < 8
    opened.emulate_media(media="print")
    assert not opened.locator("#provenance").is_visible()


def test_of_many_points_the_page_lists_a_thousand_and_says_where_all_are(
    filled: Callable[..., tuple[Database, CampaignInfo]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is lowered, since a thousand rows take seconds."""
    assert tables.MOST_POINTS == 1000
    monkeypatch.setattr(tables, "MOST_POINTS", 10)
    database, campaign = filled({}, points=[{"owd_ms": n + 300.5} for n in range(12)])
    page = page_of(database, campaign)
    assert '<td class="number">309.5</td>' in page
    assert "310.5" not in page
    assert "the first 10 of 12 networks. All: fecbench export --table points." in page
