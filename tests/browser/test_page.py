"""Every control of the page, with the mouse and with the keyboard alone."""

from __future__ import annotations

import pytest

import starr
from benchmarks.structured_runs import block_model
from tests.viewer.traces import make

pytestmark = pytest.mark.browser


def test_buttons_and_scrub(show):
    trace = make(length=24, block=8, cache="dual", seed=1)
    one, last = show([trace]), len(trace["steps"])
    click = lambda name: (one.page.click("#" + name), one.settle())  # noqa: E731
    click("start")
    assert one.frame() == 0
    click("on")
    click("on")
    assert one.frame() == 2
    click("back")
    assert one.frame() == 1
    click("end")
    assert one.frame() == "done"
    assert f"⚑ {last} forwards" in one.page.text_content(".status")
    click("start")
    assert one.frame() == 0
    click("revocation")
    first = next(index for index, step in enumerate(trace["steps"]) if 2 in step["action"])
    assert one.frame() == first + 1
    assert one.page.locator(".text .revoked").count() == trace["steps"][first]["action"].count(2)
    click("start")
    click("block")
    click("block")
    assert one.frame() == 1 + next(index for index, step in enumerate(trace["steps"]) if step["window"][0] == 8)
    one.page.fill("#scrub", "3")
    one.settle()
    assert one.frame() == 3


def test_play_ends_at_the_end(show):
    one = show([make(length=12)])
    one.page.select_option("#speed", "8")
    one.page.click("#play")
    one.wait("document.querySelector('.status').dataset.done === 'true'")
    one.wait("document.getElementById('play').textContent.includes('Play')")
    assert one.page.text_content(".text") == make(length=12)["text"]


def test_clock_whitespace_theme_zoom_and_help(show):
    trace = make(length=24)
    one = show([trace], link="#t=2")
    for clock in ("positions", "milliseconds", "forwards"):
        one.page.select_option("#clock", clock)
        one.settle()
        assert one.frame() == 2
    one.press("End")
    one.page.click("#space")
    one.settle()
    assert "·has" in one.page.text_content(".text")
    assert "⏎" in one.page.text_content(".text")
    one.page.click("#theme")
    one.settle()
    assert one.value("document.documentElement.dataset.theme") == "dark"
    narrow = one.value("document.getElementById('map').clientWidth")
    one.page.select_option("#zoom", "10")
    one.settle()
    assert one.value("document.getElementById('map').clientWidth") != narrow
    one.page.click("#keys")
    assert one.page.is_visible("#help")


def test_hover_click_and_map_show_a_life(show):
    trace = make(length=24)
    one = show([trace], link="#t=4")
    one.page.hover("#lane0-7")
    one.settle()
    assert one.page.text_content("#life-now").startswith("Position 7, starr, step 4")
    step = trace["steps"][3]
    figures = f"confidence {step['confidence'][7]:.3f} · threshold {step['threshold'][7]:.3f}"
    assert figures in one.page.text_content("#life-now")
    one.page.click("#lane0-9")
    one.page.hover("h1")
    one.settle()
    assert "Position 9" in one.page.text_content("#life-now")
    committed = 1 + max(index for index, each in enumerate(trace["steps"]) if each["action"][9] == 1)
    assert f"step {committed}: commit" in one.page.text_content("#life-actions")
    one.page.click("#map", position={"x": 48 + 24 * 3 + 5, "y": 34 + 14 * 2 + 5})
    one.settle()
    assert one.frame() == 3
    assert "Position 3, starr, step 3" in one.page.text_content("#life-now")
    one.page.click("[data-chart=masks] canvas", position={"x": 41, "y": 50})
    one.settle()
    assert one.frame() == 0


def test_the_link_restores_the_state(show):
    traces = [make(length=24, block=8, seed=seed) for seed in (0, 1)]
    one = show(traces, link="#t=0")
    one.press("ArrowRight", "ArrowRight", "ArrowRight", "2", "w", "d")
    one.page.click("#lane1-17")
    one.wait("location.hash.includes('p=17')")
    link = one.value("location.hash")
    assert {"t=3", "p=17", "lane=1", "w=1", "theme=dark"} <= set(link[1:].split("&"))
    other = show(traces, link=link)
    assert other.frame(1) == 3
    assert other.page.text_content("#lanes") == one.page.text_content("#lanes")
    assert other.page.get_attribute("#lane1-17", "class").endswith("picked")
    other.value("location.hash = '#t=1&p=2'")
    other.wait("document.querySelector('#lane0-2').classList.contains('picked')")
    assert other.frame(0) == 1
    odd = show(traces, link="#t=nan&p=99999&lane=7&clock=<b>&theme=x")
    assert odd.frame(0) == 1


def test_keyboard_alone_reaches_everything(show):
    traces = [make(length=16, block=8, seed=seed) for seed in (0, 1)]
    one = show(traces, link="#t=2&p=3")
    controls = one.value(
        """[...document.querySelectorAll('button, select, input, summary, [tabindex="0"]')]
           .filter((node) => node.checkVisibility()).map((node, index) => (node.dataset.order = index))"""
    )
    reached = set()
    for _ in range(2 * len(controls)):  # scrolling boxes are stops as well
        one.press("Tab")
        reached.add(one.value("document.activeElement.dataset.order"))
    assert {str(index) for index in controls} <= reached
    nameless = """[...document.querySelectorAll('button, select, input, canvas, [role=listbox]')].filter((node) =>
        !node.ariaHidden && !node.ariaLabel && !node.textContent.trim() && !node.labels?.length).length"""
    assert one.value(nameless) == 0
    one.page.focus("#map")
    one.press("ArrowDown", "ArrowDown", "ArrowRight", "Shift+ArrowRight", "Home", "ArrowRight")
    one.settle()
    assert one.frame() == 1
    assert "Position 5" in one.page.text_content("#life-now")
    one.press("r", "Shift+R", "b", "Shift+B", "c", "+", "-", "?", "Escape", "Space", "Space", "End")
    one.settle()
    assert one.frame() == "done"


def test_png_export(show, tmp_path):
    one = show([make(length=24)], link="#t=3&p=2")
    with one.page.expect_download() as download:
        one.page.click("#png")
    download.value.save_as(tmp_path / "shot.png")
    data = (tmp_path / "shot.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 10_000
    assert download.value.suggested_filename == "starr-starr-3.png"


@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (1600, False)])
def test_nothing_is_wider_than_the_window(show, width, dark):
    traces = [make(length=40, seed=seed, strategy=f"starr:temporal_window={seed},blend=1/1/1") for seed in range(4)]
    one = show(traces, link="#t=3&p=5", width=width, dark=dark)
    assert one.value("document.documentElement.scrollWidth") <= width
    wide = """[...document.querySelectorAll('body *')].filter((node) => !node.closest('.scroll')
        && node.checkVisibility() && node.getBoundingClientRect().right > innerWidth + 1).map((node) => node.id)"""
    assert one.value(wide) == []
    assert one.value("document.documentElement.dataset.theme") == ("dark" if dark else "light")


def test_sealed_blocks_of_a_block_causal_trace_are_framed(show):
    trace = make(length=24, block=8, cache="dual", seed=1) | {"blocks": [0, 8, 16]}
    one = show([trace])
    one.page.click("#start")
    one.settle()
    assert one.page.locator(".text .sealed").count() == 0
    second = next(index for index, step in enumerate(trace["steps"]) if step["window"][0] == 8)
    one.page.fill("#scrub", str(second))
    one.settle()
    assert one.page.locator(".text .sealed").count() == 8
    assert one.page.locator(".text .sealed.first").count() == one.page.locator(".text .sealed.last").count() == 1
    one.page.click("#end")
    one.settle()
    assert one.page.locator(".text .sealed.last").count() == 3


def test_a_position_shows_which_tokens_a_constraint_allows(show):
    """The trace of a real run in blocks: the set behind every proposal of a position."""
    model = block_model(6, "sdar")
    run = starr.generate(model, "abcab", regex="[xyz]{9}(yes|no)", max_tokens=12, trace=True)
    one = show([run.trace.to_dict()], link="#t=1")
    one.page.click("#lane0-0")
    one.settle()
    assert 'of 3 allowed: "x" "y" "z"' in one.page.text_content("#life-proposals")
    one.page.click("#lane0-11")
    one.settle()
    assert "allowed:" in one.page.text_content("#life-proposals")
