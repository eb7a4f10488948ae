"""`fecbench serve` in a browser, while a campaign runs."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from fecbench.results.store.database import Database
from fecbench.results.store.records import TrialKey
from tests.support.browsing import PATIENCE_MS, grave, launched, needs_chromium
from tests.support.campaigns import new_campaign, trial, variants, workload

pytestmark = needs_chromium
LABELS, WORKLOAD, POINTS, REPETITIONS = ("off", "on"), "download-1000", 12, 6
PLANNED = len(LABELS) * POINTS * REPETITIONS


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def db(plant: Any, tmp_path: Path) -> Path:
    """A campaign that is whole, and `growing`, which has no trial yet."""
    path = plant(tmp_path / "live.sqlite", points=3)
    with Database.open(str(path)) as database:
        database.create_campaign(
            new_campaign(
                name="growing",
                points=[{"loss.p": 0.01 + 0.005 * point} for point in range(POINTS)],
                variants=variants(*LABELS, baseline="off"),
                workloads=[workload(WORKLOAD, size_bytes=1000)],
                repetitions=REPETITIONS,
            )
        )
    return path


@pytest.fixture
def url(db: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address that the command tells at once, into a pipe too; it ends by Ctrl-C."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    command = [Path(sys.executable).parent / "fecbench", "serve", "--db", db, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout
        line = served.stdout.readline()
        assert " on http://127.0.0.1:" in line, line
        yield line.split(" on ")[1].split()[0]
        served.send_signal(signal.SIGINT)
    assert served.returncode == 128 + signal.SIGINT


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab for which a policy of content is no limit, as axe needs it."""
    with browser.new_context(bypass_csp=True) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()


def grave_in_either(tab: Page) -> list[tuple[str, str]]:
    """Return what is grave for a reader with light colours, and with dark ones."""
    faults: list[tuple[str, str]] = []
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        faults += grave(tab)
    return faults


def run(db: Path, repetitions: range) -> None:
    """Record these repetitions of `growing`, as a campaign does that runs: twice as fast with FEC."""
    with Database.open(str(db)) as writer:
        info = next(info for info in writer.campaigns() if info.name == "growing")
        records = []
        for label, point, repetition in product(LABELS, range(POINTS), repetitions):
            metrics = {"client": {"dct_s": (1.0 if label == "off" else 0.5) + 0.01 * repetition}}
            records.append(trial(TrialKey(label, WORKLOAD, point, repetition), "ok", metrics=metrics))
        writer.record_all(info.id, records)


def test_a_page_that_was_opened_before_the_first_trial_grows_to_the_answer_without_being_loaded_anew(
    tab: Page, url: str, db: Path
) -> None:
    tab.goto(f"{url}campaign/growing")
    live, first = tab.locator("#live"), tab.locator(".first")
    expect(live).to_contain_text(f"0 of {PLANNED} trials")
    assert grave_in_either(tab) == []
    tab.evaluate("window.opened = true")
    run(db, range(2))
    expect(live).to_contain_text(
        f"{PLANNED // 3} of {PLANNED} trials: {PLANNED // 3} ok; running or to be continued"
    )
    run(db, range(2, REPETITIONS))
    expect(live).to_contain_text(
        f"{PLANNED} of {PLANNED} trials: {PLANNED} ok; the first screen is of {PLANNED}"
    )
    expect(first).to_contain_text("on helps over these networks")
    expect(first).to_contain_text(f"{PLANNED} of {PLANNED} trials are ok")
    assert tab.evaluate("window.opened") is True
    assert grave_in_either(tab) == []
    live.get_by_role("link").click()
    expect(live).to_contain_text(f"{PLANNED} of {PLANNED} trials")
    assert tab.evaluate("window.opened === undefined")


def test_two_campaigns_stand_beside_each_other_and_tables_come_as_csv(
    tab: Page, url: str, db: Path, tmp_path: Path
) -> None:
    run(db, range(REPETITIONS))
    before = db.read_bytes()
    tab.goto(url)
    assert grave_in_either(tab) == []
    with tab.expect_download() as download:
        tab.get_by_role("row", name="growing").get_by_role("link", name="trials").click()
    download.value.save_as(tmp_path / "trials.csv")
    assert len(pd.read_csv(tmp_path / "trials.csv")) == PLANNED
    tab.get_by_label("left").select_option("growing")
    tab.get_by_label("right").select_option("planted")
    tab.get_by_role("button", name="show").click()
    for name, planned in (("growing", PLANNED), ("planted", 6)):
        expect(tab.frame_locator(f'iframe[title="{name}"]').locator("#live")).to_contain_text(
            f"{planned} of {planned} trials"
        )
    assert grave_in_either(tab) == []
    assert db.read_bytes() == before
