"""The picture of an evaluation: round ticks, and names of runs that lie close do not cover each other."""

from __future__ import annotations

import pytest

from starr.evals.run.evaluate import run_evaluation
from starr.evals.run.picture import scatter
from starr.evals.run.report import page as report_of
from tests.evals.toy import toy_job

pytestmark = pytest.mark.browser

BOXES = """[...document.querySelectorAll('text.name')].map((node) => {
    const { left, top, right, bottom } = node.getBoundingClientRect();
    return [left, top + 3, right, bottom - 3];
})"""


BARS = """[...document.querySelectorAll('line[stroke-width]')].map((node) => {
    const { left, top, right, bottom } = node.getBoundingClientRect();
    return [left - 1, top, right + 1, bottom];
})"""


def test_names_stand_beside_the_bars(browser):
    """Wide intervals of few samples: a name must not be struck through by a neighbour's."""
    points = [
        ("confidence", 128.0, 1.0, (0.68, 1.0)),
        ("starr", 10.9, 0.5, (0.21, 0.79)),
        ("threshold", 15.4, 0.88, (0.53, 0.98)),
    ]
    page = browser.new_page(viewport={"width": 800, "height": 460})
    page.set_content(f"<body>{scatter(points, 'forwards', 'accuracy')}</body>")
    names, bars = page.evaluate(BOXES), page.evaluate(BARS)
    page.close()
    assert len(names) == len(bars) == 3
    for left, top, right, bottom in names:
        for bar in bars:
            assert left >= bar[2] or bar[0] >= right or top >= bar[3] or bar[1] >= bottom


@pytest.mark.parametrize(
    ("most", "low", "values", "shares"),
    [
        (128.0, 0.21, "0 50 100 150", "0.2 0.4 0.6 0.8 1.0"),
        (15.4, 0.53, "0 5 10 15 20", "0.4 0.5 0.6 0.7 0.8 0.9 1.0"),
        (9.0, 0.95, "0 2 4 6 8 10", "0.80 0.85 0.90 0.95 1.00"),
        (0.0, 0.0, "0.0 0.2 0.4 0.6 0.8 1.0 1.2", "0.0 0.2 0.4 0.6 0.8 1.0"),
    ],
)
def test_ticks_are_round(browser, most, low, values, shares):
    page = browser.new_page()
    page.set_content(f"<body>{scatter([('starr', most, 1.0, (low, 1.0))], 'forwards', 'accuracy')}</body>")
    found = [page.locator(f"svg text.{name}").all_text_contents() for name in ("value", "share")]
    page.close()
    assert found == [values.split(), shares.split()]


@pytest.mark.parametrize("count", [4, 8])
def test_names_do_not_overlap(browser, count):
    names = ["starr", "threshold", "starr:temporal_window=5,spatial_window=2,responsive=false", "confidence"]
    points = [
        (f"{names[n % 4]} {n}", 9 + n * 0.3 if n % 4 < 3 else 128.0, 0.97 + 0.002 * n, (0.95, 0.99))
        for n in range(count)
    ]
    page = browser.new_page(viewport={"width": 800, "height": 460})
    page.set_content(f"<body>{scatter(points, 'forwards', 'accuracy')}</body>")
    boxes = page.evaluate(BOXES)
    frame = page.evaluate("[0, document.querySelector('svg').getBoundingClientRect().right]")
    page.close()
    assert len(boxes) == count
    for place, (left, top, right, bottom) in enumerate(boxes):
        assert frame[0] <= left < right <= frame[1]
        for other in boxes[:place]:
            assert left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom


@pytest.mark.parametrize("width", [390, 1400])
def test_the_words_of_the_picture_can_be_read(browser, tmp_path, width):
    report = report_of(run_evaluation(*toy_job(tmp_path / "run", limit=2)), {})
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_content(report)
    high = page.evaluate("document.querySelector('text.share').getBoundingClientRect().height")
    wide = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert 11 <= high <= 22
    assert wide <= width
