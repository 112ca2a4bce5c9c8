"""A real browser: Debian's chromium, driven by playwright. Without it these tests are skipped and say why."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field

import pytest

from starr.viewer.html import build_page as page_of

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP evil.example 127.0.0.1",  # a stranger's name that leads to this machine
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """Closed with its module: while it is open, no other event loop can run in this process."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: apt-get install -y chromium")
    with sync_api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield running
        running.close()


@dataclass
class Opened:
    """A page and everything it complained of or asked for."""

    page: object
    address: str
    troubles: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def value(self, script):
        return self.page.evaluate(script)

    def wait(self, script):
        """Until the expression holds; asked from outside, for the page's policy forbids it to evaluate text."""
        end = time.monotonic() + 60
        while not self.value(script):
            assert time.monotonic() < end, script
            self.page.wait_for_timeout(50)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def frame(self, lane=0):
        """Step shown in a lane, from its status; "done" at the end."""
        status = self.page.locator(".status").nth(lane)
        return "done" if status.get_attribute("data-done") == "true" else int(status.text_content().split()[1])

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.fixture
def show(browser, tmp_path):
    """Write a page for traces, open it from disk, and check at the end that it was quiet."""
    opened = []

    def open_page(traces, *, link="", width=1280, dark=False, moves=False):
        path = tmp_path / f"page{len(opened)}.html"
        path.write_text(page_of(traces, "A page"), encoding="utf-8")
        page = browser.new_page(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="no-preference" if moves else "reduce",
        )
        page.set_default_timeout(60_000)
        one = Opened(page, path.as_uri())
        page.on("console", lambda message: one.troubles.append(message.text))
        page.on("pageerror", lambda error: one.troubles.append(str(error)))
        page.on("request", lambda request: one.requests.append(request.url))
        page.goto(one.address + link)
        page.wait_for_selector("[data-ready]", state="attached")
        opened.append(one)
        return one

    yield open_page
    for one in opened:
        assert one.troubles == []
        assert {address.split("#")[0] for address in one.requests} <= {one.address}
        one.page.close()
