"""A real browser for tests of the page: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or ""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

PATIENCE_MS = 60_000.0
"""How long a condition in the page may take to come true: far more than anything takes on a busy machine."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """Open a browser for the length of a block; skip the test where there is none."""
    if not CHROMIUM:
        pytest.skip("no chromium here: install it with `apt-get install --no-install-recommends chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()
