"""The page at / in a real browser: a question is asked, the canvas fills, and every step can be looked at after."""

import pytest

from tests.server.conftest import folder, model, writer  # noqa: F401
from tests.server.running import running

pytestmark = pytest.mark.browser


def test_the_page_shows_a_run_and_then_its_steps(browser, writer):  # noqa: F811
    defaults = {"strategy": "starr", "block_length": None, "max_tokens": 20}
    with running(lambda: writer, api_key="secret", frame=0.0, defaults=defaults) as here:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        troubles = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(here.url)
        page.click("#run")
        page.wait_for_function("document.getElementById('error').textContent.includes('key')")
        page.fill("#key", "secret")
        page.dispatch_event("#key", "change")
        page.wait_for_function("document.querySelectorAll('#strategies option').length > 10")
        hints = page.evaluate("['strategy', 'cache', 'max_tokens', 'block_length'].map((id) => at(id).placeholder)")
        assert hints == ["starr", "the model's", "20", "whole"], "an empty field shows what the server takes"
        page.click("#run")
        page.wait_for_selector("#viewer:not([hidden])")
        shown = page.text_content("#canvas")
        assert page.locator("#canvas span").count() == 20
        assert "▒" not in shown
        assert "tokens per forward" in page.text_content("#status")
        assert page.text_content("#error") == ""
        assert "<|" not in shown
        assert "diffusion model" in page.title()
        inside = page.frame_locator("#viewer")
        inside.locator("[data-ready]").wait_for(state="attached")
        assert inside.locator("h1").text_content().startswith("Every step of a run by starr · ")
        assert "forwards" in inside.locator("#now").text_content()
        page.fill("#strategy", "no such")
        page.click("#run")
        page.wait_for_function("document.getElementById('error').textContent.includes('Unknown')")
        over = "[['a', 'held'], ['<|eot_id|>', 'held'], ['', 'masked']]"
        assert page.evaluate(f"draw({over}), at('canvas').textContent") == "a∎▒"
        assert page.evaluate("finish(), at('canvas').textContent") == "a∎", "nobody waits for what is behind the end"
        assert page.evaluate("[counted(1, 'mask'), counted(2, 'mask')]") == ["1 mask", "2 masks"]
        assert troubles == []
        page.close()
