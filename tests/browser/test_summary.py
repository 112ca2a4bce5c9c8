"""The summary above the pictures, the first play, and what "held" means."""

from __future__ import annotations

import pytest

from tests.viewer.traces import make

pytestmark = pytest.mark.browser


def graded(right, formed=None, **more):
    return make(length=12, **more) | {"right": right, "formed": formed}


@pytest.mark.parametrize("width", [390, 1280])
def test_the_summary_names_the_winner_and_its_margin(show, width):
    slow, fast = graded(True, True, pace=1), graded(True, True, pace=6, strategy="threshold")
    one = show([slow, fast], width=width)
    text, counts = one.page.text_content("#summary"), [len(trace["steps"]) for trace in (slow, fast)]
    assert counts[1] < counts[0]
    assert text.startswith(f"threshold won: {counts[1]} forward")
    assert f"{counts[0] - counts[1]} fewer than the next" in text
    assert "right and well formed" in text
    assert one.value("document.documentElement.scrollWidth <= innerWidth")


def test_a_fast_wrong_answer_does_not_win(show):
    slow, fast = graded(True, pace=1), graded(False, pace=6, strategy="threshold")
    assert show([slow, fast]).page.text_content("#summary").startswith("starr won")
    assert show([graded(False), graded(False)]).page.text_content("#summary").startswith("No lane won")


def test_a_page_plays_once_unless_its_link_names_a_time_or_its_reader_wants_no_motion(show):
    trace = make(length=12, pace=6)
    moving = show([trace], moves=True)
    moving.page.get_by_role("button", name="Play", exact=True).wait_for()
    assert moving.page.input_value("#scrub") == moving.page.get_attribute("#scrub", "max")
    still = show([trace], moves=True, link="#t=1")
    assert "Play" in still.page.text_content("#play")
    assert still.page.input_value("#scrub") == "1"


def test_held_tokens_of_a_lane_that_never_revokes_stay(show):
    trace = make(length=12)
    for step in trace["steps"]:
        step["action"] = [min(action, 1) for action in step["action"]]
    plain = trace | {"strategy": "threshold"}
    legend = "#legend li:has(.held)"
    assert "may still be revoked" not in show([plain]).page.text_content(legend)
    assert "lane 2" in show([plain, make(length=12, strategy="starr")]).page.text_content(legend)
