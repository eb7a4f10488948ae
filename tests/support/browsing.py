"""Debian's Chromium, driven by Playwright, and what axe finds on a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""The one without windows, which takes less than half of the time to start, or else the other."""
PATIENCE_MS = 120_000
"""Long, since the machine may be busy."""

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is missing: apt-get install chromium-headless-shell"
)

_AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0)


def grave(tab: Page) -> list[tuple[str, str]]:
    """Return what axe finds critical or serious. The page's context has to bypass its policy of content."""
    tab.evaluate(_AXE)
    violations = tab.evaluate("axe.run().then((result) => result.violations)")
    return [(one["impact"], one["id"]) for one in violations if one["impact"] in ("critical", "serious")]
