"""Plots are written, as PNG and SVG, the same bytes every time."""

from __future__ import annotations

import numpy as np
import pytest

from starr.errors import InputError, LoadError, WorkError
from tests.viewer.traces import make

plots = pytest.importorskip("starr.viewer.plots")


@pytest.mark.parametrize("kind", ["token", "map", "curves"])
def test_png_and_svg(tmp_path, kind):
    draw, trace = (
        getattr(plots, f"plot_{kind}"),
        make(length=16, block=8, strategy="a$b$_<c>", words=("$x$", "</text>", "😀")),
    )
    draw(trace, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    draw(trace, tmp_path / "one.svg")
    draw(trace, tmp_path / "two.svg")
    svg = (tmp_path / "one.svg").read_text()
    assert svg == (tmp_path / "two.svg").read_text()
    assert "<svg" in svg
    assert "step" in svg


def test_no_threshold_still_draws(tmp_path):
    trace = make(length=8, threshold=False)
    plots.plot_token(trace, tmp_path / "t.svg", position=2)
    plots.plot_map(trace, tmp_path / "m.svg")
    plots.plot_curves(trace, tmp_path / "c.svg")
    assert "threshold" not in (tmp_path / "t.svg").read_text().replace("thresholds", "")
    assert "confidence minus ½" in (tmp_path / "m.svg").read_text()


def test_the_grid_is_empty_outside_the_windows():
    trace = make(length=8, block=4)
    found = plots.read_grid(trace, "confidence")
    assert found[0, :4].tolist() == trace["steps"][0]["confidence"]
    assert np.isnan(found[0, 4:]).all()


def test_wrong_use_is_one_line(tmp_path):
    with pytest.raises(InputError, match="not from 0 to 7"):
        plots.plot_token(make(length=8), tmp_path / "a.png", position=8)
    with pytest.raises(InputError, match="not '/"):
        plots.plot_map(make(length=8), tmp_path / "a.pdf")
    with pytest.raises(LoadError, match="newer"):
        plots.plot_map(make(length=8) | {"version": 2}, tmp_path / "a.png")
    with pytest.raises(WorkError, match="Cannot write"):
        plots.plot_map(make(length=8), tmp_path / "no" / "a.png")
