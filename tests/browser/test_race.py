"""Lanes on one clock, and where they part."""

from __future__ import annotations

import pytest

from tests.viewer.traces import make

pytestmark = pytest.mark.browser

TOKENS = """[...document.querySelectorAll('.text')].map(
    (text) => [...text.children].map((cell) => Number(cell.dataset.id)))"""
LANES = ({"strategy": "starr"}, {"strategy": "threshold", "block_length": 8, "cache": "dual"},
         {"strategy": "confidence"}, {"strategy": "random"})  # fmt: skip


def test_four_lanes_end_with_the_tokens_of_their_runs(show):
    import starr

    model = starr.load()
    runs = [
        starr.generate(model, "Tom has 3 apples and buys 4 more.", max_tokens=24, trace=True, **lane) for lane in LANES
    ]
    one = show([run.trace.to_dict() for run in runs])
    one.press("End")
    one.settle()
    shown = one.value(TOKENS)
    assert shown == [run.trace.tokens for run in runs]
    assert all(tokens[: len(run.tokens)] == run.tokens for tokens, run in zip(shown, runs, strict=True))
    for lane, run in enumerate(runs):
        flag = one.page.locator(".status").nth(lane).text_content()
        assert f"⚑ {run.stats.forwards} forwards · {run.stats.tokens_per_forward:.2f} tokens per forward" in flag


def test_lanes_share_the_clock_and_end_each_in_its_time(show):
    quick, slow = make(length=24, pace=6), make(length=24, pace=1, seed=1)
    one = show([quick, slow], link=f"#t={len(quick['steps'])}")
    assert one.frame(0) == "done"
    assert one.frame(1) == len(quick["steps"])
    assert "✓ right" in one.page.locator(".status").nth(0).text_content()
    one.press("End")
    one.settle()
    assert "✗ wrong" in one.page.locator(".status").nth(1).text_content()
    one.page.select_option("#clock", "milliseconds")
    one.settle()
    half = 1000 * slow["steps"][9]["seconds"] + 0.01
    one.page.fill("#scrub", str(half))
    one.settle()
    assert one.frame(1) == 10
    assert one.frame(0) in ("done", sum(1000 * step["seconds"] <= half for step in quick["steps"]))


def test_difference(show):
    traces = [make(length=24, seed=seed) for seed in (0, 1, 2)]
    one = show([*traces, traces[0]])
    assert "first differ after step" in one.page.text_content("#parting")
    assert one.page.locator("#compare del, #compare ins").count() > 0
    one.page.click("#go-parting")
    one.settle()
    step = one.frame(0)
    shown = one.value(TOKENS)
    assert shown[0] != shown[1]
    one.press("ArrowLeft")
    one.settle()
    before = one.value(TOKENS)
    assert step >= 1
    assert before[0] == before[1]
    one.page.select_option("#second", "3")
    one.settle()
    assert "never differ" in one.page.text_content("#parting")
    assert one.page.text_content("#compare") == traces[0]["text"]
