"""A real browser for tests of the page: Debian's Chromium, driven by Playwright."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

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


def opened(context: BrowserContext, address: str) -> Iterator[Page]:
    """Open the dashboard, and yield it once it shows what was asked; whatever it complains of fails the test."""
    context.set_default_timeout(PATIENCE_MS)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    page.goto(f"{address}/dashboard")
    expect(row(page, "dashboard-refused")).to_be_visible()
    yield page
    page.unroute_all(behavior="ignoreErrors")  # a handler at work would fail in whichever test comes next
    assert wrong == []


def row(page: Page, session: str) -> Any:
    """Return the rows of a session's exchanges."""
    named = page.locator("[data-label=Session]", has_text=re.compile(f"^{re.escape(session)}$"))
    return page.locator("#rows").get_by_role("row").filter(has=named)


def serious_faults(page: Page) -> None:
    """Fail where axe finds something serious."""
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if _serious(each)] == []


def _serious(violation: dict[str, Any]) -> bool:
    return violation["impact"] in ("serious", "critical")
