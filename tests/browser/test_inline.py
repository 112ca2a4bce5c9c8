"""The viewer inside another page, as a notebook shows a result: it runs there, and reaches nothing outside."""

from __future__ import annotations

import pytest

from starr.viewer.inline import show_inline
from tests.viewer.traces import make

pytestmark = pytest.mark.browser


def test_it_runs_in_a_frame_of_its_own(browser, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body><p>a notebook</p>{show_inline([make(length=24)])}</body>", encoding="utf8")
    page = browser.new_page(viewport={"width": 900, "height": 760}, reduced_motion="reduce")
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(path.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("[data-ready]").wait_for(state="attached")
    assert inside.locator(".status").text_content().startswith("step 1 of")
    inside.locator("#on").click()
    inside.locator("#end").click()
    inside.locator('.status[data-done="true"]').wait_for()
    assert page.url == path.as_uri()
    assert troubles == []
    page.close()
