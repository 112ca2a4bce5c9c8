"""What somebody sees who opens a page for the first time: something happened, and every picture fits."""

from __future__ import annotations

from html import escape

import pytest

from starr.viewer.html import build_page as page_of
from tests.viewer.traces import WORDS, ended, make

pytestmark = pytest.mark.browser

INK = """(() => {
    const canvas = document.getElementById('%s'), ratio = canvas.width / canvas.clientWidth;
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const ctx = copy.getContext('2d', { willReadFrequently: true });
    ctx.drawImage(canvas, 0, 0);
    const found = ctx.getImageData(...[%d, %d, %d, %d].map((value) => Math.round(value * ratio))).data;
    return found.filter((value, index) => !(index & 3) && value + found[index + 1] + found[index + 2] < 700).length;
})()"""


def test_it_opens_after_the_first_commits_with_a_life_to_read(show):
    traces = [make(length=24, seed=seed) for seed in (0, 1)]
    traces[1]["steps"][0] |= {"action": [0] * 24, "decided": [0] * 24}
    one = show(traces)
    assert (one.frame(0), one.frame(1)) == (2, 2)
    assert one.page.locator(".text .fresh, .text .held, .text .settled").count() > 0
    first = traces[0]["steps"][0]["action"].index(1)
    assert f"Position {first}" in one.page.text_content("#life-now")
    assert one.page.is_visible("#life-chart")
    assert one.page.text_content("#now").strip() == f"2 of {max(len(trace['steps']) for trace in traces)} forwards"


def test_a_page_that_is_drawn_in_a_hidden_frame_does_not_complain(browser):
    """As on the live page, where the frame is shown a moment later."""
    inside = escape(page_of([make(length=24)], "hidden"), quote=True)
    page, troubles = browser.new_page(), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.set_content(f'<iframe srcdoc="{inside}" style="width:0;height:0;border:0"></iframe>')
    page.frames[1].wait_for_selector("[data-ready]", state="attached")
    page.close()
    assert troubles == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_map_fits_names_its_axes_and_folds_end_of_text(show, width):
    trace = ended(length=200, text=30, block=50)
    one = show([trace], width=width)
    room = one.value("document.getElementById('map-scroll').clientWidth")
    assert one.value("document.getElementById('map').clientWidth") <= room
    assert one.value(INK % ("map", 48, 0, 70, 14)) > 20  # position, along the top
    assert one.value(INK % ("map", 0, 34, 14, 40)) > 20  # step, along the left
    assert "folded" in one.page.text_content("#map-note")
    one.page.check("#whole")
    one.settle()
    whole = one.value("document.getElementById('map').clientWidth")
    assert whole <= room
    one.page.select_option("#zoom", "10")
    one.settle()
    assert one.value("document.getElementById('map').clientWidth") == 48 + 200 * 10 + 2
    shown = 2 + max(place for place, token in enumerate(trace["tokens"]) if token != 1 + len(WORDS))
    one.page.uncheck("#whole")
    one.settle()
    assert one.value("document.getElementById('map').clientWidth") == 48 + shown * 10 + 14 + 2


def test_a_map_without_end_of_text_has_nothing_to_fold(show):
    one = show([make(length=48)])
    assert not one.page.is_visible("#whole")
    assert "folded" not in one.page.text_content("#map-note")


def test_thresholds_below_zero_are_drawn_and_the_life_is_not_cut(show):
    below = INK % ("life-chart", 45, 100, 1000, 38)
    ink = []
    for low, high in ((-0.5, -0.1), (0.5, 0.9)):
        trace = make(length=24)
        for number, step in enumerate(trace["steps"]):
            step |= {"threshold": [(low, high)[number % 2]] * 24, "confidence": [0.95] * 24}
        one = show([trace], link="#t=3&p=2")
        ink.append(one.value(below))
    assert ink[0] > 50
    assert ink[1] == 0
    cut = """[...document.querySelectorAll('#life-actions, #life-proposals')].some(
        (list) => list.scrollHeight > list.clientHeight + 1)"""
    assert not one.value(cut)


def test_buttons_that_lead_nowhere_are_disabled(show):
    one = show([make(length=24)])
    assert one.page.is_disabled("#block")
    blocks = show([make(length=24, block=8)])
    assert blocks.page.is_enabled("#block")


def test_the_difference_says_how_many_rows_it_leaves_out(show):
    one = show([make(length=96, seed=seed, pace=40) for seed in (0, 1)])
    count = int(one.page.text_content("#parting").partition(", at ")[2].split()[0])
    assert count > 12
    assert f"and {count - 12} more positions, not listed" in one.page.text_content("#parting-cells")


@pytest.mark.parametrize("width", [390, 1280])
def test_names_of_lanes_hide_no_curve(show, width):
    one = show(
        [make(length=96, pace=30), make(length=96, pace=20, seed=2), make(length=96, pace=1, seed=1)], width=width
    )
    assert one.value("document.querySelector('[data-chart=masks] canvas').dataset.hidden") == "0"


def test_a_fast_lane_is_not_squeezed_beside_a_slow_one(show):
    fast, slow = make(length=96, pace=30), make(length=96, pace=1, seed=1)
    assert len(slow["steps"]) > 10 * len(fast["steps"])
    one = show([fast, slow], link=f"#t={len(fast['steps'])}")
    left = float(one.value("document.querySelector('[data-chart=masks] .cursor').style.left.replace('px', '')"))
    width = one.value("document.querySelector('[data-chart=masks] canvas').clientWidth")
    assert (left - 40) / (width - 52) > 0.3
    one.page.click("[data-chart=masks] canvas", position={"x": left, "y": 50})
    one.settle()
    assert one.frame(0) in ("done", len(fast["steps"]) - 1)
    even = show([fast, make(length=96, pace=30, seed=2)], link="#t=1")
    left = float(even.value("document.querySelector('[data-chart=masks] .cursor').style.left.replace('px', '')"))
    most = int(even.page.text_content("#now").split()[2])
    assert left == pytest.approx(40 + (width - 52) / most, abs=1)
