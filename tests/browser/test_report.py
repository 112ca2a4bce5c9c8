"""The picture of an evaluation: names of runs that lie close do not cover each other."""

from __future__ import annotations

import pytest

from starr.evals.run.picture import scatter

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
