"""Scrubbing through 256 positions and 128 steps leaves room for 30 frames a second."""

from __future__ import annotations

import pytest

from tests.viewer.traces import make

pytestmark = pytest.mark.browser

SCRUB = """async (count) => {
  const scrub = document.getElementById("scrub");
  for (let index = 0; index < count; index++) {
    scrub.value = (scrub.max * index) / count;
    scrub.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => requestAnimationFrame(done));
  }
}"""


def busy_seconds(session):
    """Processor time of the page's main thread: scripts, layout, painting; nothing else on the machine counts."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def test_thirty_frames_a_second(show):
    trace = make(length=256, pace=2)
    trace["steps"] = trace["steps"][:128]
    one = show([trace], link="#p=100", width=1600)
    session = one.page.context.new_cdp_session(one.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    one.page.evaluate(SCRUB, 20)
    before = busy_seconds(session)
    one.page.evaluate(SCRUB, 128)
    frame = (busy_seconds(session) - before) / 128
    assert 0.0005 < frame < 1 / 30
