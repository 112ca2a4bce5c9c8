"""Figures: no colour twice, axes that hold every interval, numbers that people read."""

import itertools
from collections import Counter
from dataclasses import replace

import matplotlib
import pytest

from starr.research.reproduce.figures import colours, log_axis, share_axis
from starr.research.reproduce.front import SIDES, front, offsets, sweeps_by_name
from starr.research.reproduce.over import draw, table1_over
from starr.research.reproduce.parallel import TOGETHER, parallel, parallel_runs
from tests.evals.toy import toy_bench

matplotlib.use("Agg")
from matplotlib import pyplot


@pytest.fixture
def axes():
    figure, found = pyplot.subplots()
    yield found
    pyplot.close(figure)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return toy_bench(tmp_path_factory.mktemp("figures"), max_tokens=8)


def test_no_colour_stands_for_two_strategies():
    families = Counter(sweep.family for sweep in sweeps_by_name().values())
    widest = max(families.values())
    every = [colour for number in range(len(families)) for colour in colours(widest, number / len(families))]
    assert len(set(every)) == len(every) == widest * len(families)
    nearest = min(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in itertools.combinations(every, 2))
    assert nearest > 0.05


def test_the_axis_of_shares_holds_every_interval(axes, bench):
    measured = bench.measure(parallel_runs(bench))
    share_axis(axes, measured)
    low, high = axes.get_ylim()
    assert all(low < 100 * end < high for m in measured for end in m.figures["both_interval"])


def test_costs_are_plain_numbers(axes):
    log_axis(axes)
    axes.set_xlim(1.5, 150)
    axes.figure.canvas.draw()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert {"2", "5", "10", "20", "50", "100"} <= set(shown)


def test_the_front_has_a_row_of_panels_per_family_with_threshold_in_grey(bench):
    result = front(bench, ("confidence", "threshold", "starr"))
    figure = pyplot.figure()
    result.draw(figure)
    panels = figure.axes
    assert len(panels) == 2 * 3  # three families: forwards on the left, positions on the right
    assert [panel.get_xlabel().split()[0] for panel in panels[:2]] == ["forwards", "positions"]
    drawn = [line for panel in panels for line in panel.get_lines()]
    assert not any(line.get_clip_on() for line in drawn if line.get_marker() not in ("None", "|", "_"))
    listed = [text.get_text() for panel in panels for text in panel.texts if " " in text.get_text()]
    names = [line.partition(" ")[2] for text in listed for line in text.splitlines()]
    assert sorted(names) == sorted(result.data["pareto"])
    grey = [any(line.get_color() == "0.65" for line in panel.get_lines()) for panel in panels]
    assert grey == [True, True, False, False, True, True]  # its own family shows threshold in colour
    pyplot.close(figure)


def test_points_with_fewer_items_are_named(bench):
    names = ("confidence", "threshold")
    assert not any("fewer items" in note for note in front(bench, names).notes)
    (note,) = (n for n in front(replace(bench, fewer={"threshold:tau=0.8": 2}), names).notes if "fewer items" in n)
    assert note.endswith(": threshold:tau=0.8 (2).")


def test_numbers_of_points_that_lie_together_stand_on_different_sides():
    assert offsets([(0.0, 0.0), (100.0, 50.0)]) == [SIDES[0], SIDES[0]]
    assert len(set(offsets([(0.0, 0.0), (1.0, 1.0), (0.0, 2.0)]))) == 3
    crowd = offsets([(0.0, 0.0)] * (len(SIDES) + 1))
    assert set(crowd) == set(SIDES)
    assert crowd[-1] == SIDES[0]


def test_tokens_per_step_share_their_runs_with_the_front(bench):
    names = [run.name for run in parallel_runs(bench)]
    assert names == ["confidence", "confidence:steps=4", "confidence:steps=2", "confidence:steps=1"]
    row = parallel(bench).rows[0]
    assert row["kind"] == "all"
    assert all(f"{count} per step, both %" in row for count in TOGETHER)


def test_table1_over_several_benches_has_a_panel_for_each(bench):
    result = table1_over([bench])
    assert [row["run"] for row in result.rows] == ["confidence", "threshold", "dus", "starr"]
    assert {(row["model"], row["task"]) for row in result.rows} == {(bench.settings.model, "toy")}
    assert all("forwards / limit" in row and "positions interval" in row for row in result.rows)
    figure = pyplot.figure(layout="constrained")
    result.draw(figure)
    assert [panel.get_title() for panel in figure.axes] == [f"toy, {bench.settings.model}"]
    pyplot.close(figure)


def test_every_method_of_table1_is_drawn(bench):
    """With the fitted rule there are five."""
    found = bench.measure([bench.run(f"threshold:tau={tau}") for tau in (0.1, 0.3, 0.5, 0.7, 0.9)])
    figure = pyplot.figure()
    draw(figure, {("model", "task"): found})
    assert len(figure.axes[0].containers) == 5
    pyplot.close(figure)
