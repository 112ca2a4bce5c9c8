"""The picture of a rule is drawn from its scores."""

from types import SimpleNamespace

import pytest

from starr.fit.calibrate.diagram import draw, save_diagram

figures = pytest.importorskip("matplotlib.figure")

SCORES = {
    "reliability": {
        "error": 0.0125,
        "bins": [{"said": 0.1, "stood": 0.2, "n": 3}, {"said": 0.9, "stood": 0.8, "n": 7}],
    },
    "held_out": 10,
    "budgets": [
        {"run": "threshold:tau=0.9", "sound": 0.9, "forwards": 10.0},
        {"run": "0.8", "sound": 0.7, "forwards": 4.0},
        {"run": "0.95", "sound": 0.95, "forwards": 6.0},
    ],
}


def test_bins_and_budgets_are_drawn():
    figure = figures.Figure()
    draw(figure, SCORES)
    said, cost = figure.axes
    assert said.collections[0].get_offsets().tolist() == [[0.1, 0.2], [0.9, 0.8]]
    assert "0.013" in said.get_title() or "0.012" in said.get_title()
    assert cost.lines[0].get_xydata().tolist() == [[4.0, 70.0], [6.0, 95.0]]
    assert [text.get_text() for text in cost.texts] == ["0.8", "0.95"]


def test_the_ending_chooses_the_format(tmp_path):
    save_diagram(SimpleNamespace(scores=SCORES), tmp_path / "rule.svg")
    assert "<svg" in (tmp_path / "rule.svg").read_text()
