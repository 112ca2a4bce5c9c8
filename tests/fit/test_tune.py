"""Tuning on made-up samples, where the truth is known."""

import itertools
import json
import random

import pytest

from starr.api import strategy
from starr.errors import InputError
from starr.evals.run.runs import Run
from starr.evals.run.store import Sample
from starr.evals.stats import paired
from starr.fit.tune import Bound, Scored, candidates, parse_grid, score, tune, write_preset
from starr.named import text_form

# accuracy and forwards of each made-up run
TRUTH = {
    "base": (0.8, 100),
    "threshold:tau=0.95": (0.8, 40),
    "threshold:tau=0.8": (0.79, 20),
    "threshold:tau=0.5": (0.45, 8),
    "threshold:tau=0.2": (0.05, 2),
}
BAD_AND_FAST = {f"threshold:tau={place / 100}": (0.3 + place / 1000, place) for place in range(1, 12)}


def fast_and_bad(log=None):
    """Many fast runs that are wrong, and slow ones that are right: the right ones come last in speed."""
    return measured(log, TRUTH | BAD_AND_FAST)


def measured(log=None, truth=TRUTH):
    """Samples whose luck is shared between runs, as problems are easy or hard for all."""

    def measure(run, places):
        right, forwards = truth[run.strategy]
        if log is not None:
            log.append((run.strategy, len(places)))
        found = []
        for index in places:
            correct = random.Random(index).random() < right
            found.append(Sample(run.name, run.strategy, "none", index, str(index), "", correct, None, correct,
                                {"x": correct}, "", "", "", "stop", 1, forwards, 0,
                                forwards, 9, 9, 9, 0, 0.1, 0.1))  # fmt: skip
        return found

    return measure


RUNS = [Run(name) for name in TRUTH if name != "base"]
SPLITS = (list(range(0, 512, 2)), list(range(1, 512, 2)))


def test_the_fastest_run_within_the_bound_wins():
    tuned = tune(RUNS, Run("base"), Bound(5.0, 0.9), SPLITS, measured())
    assert tuned.winner.run.strategy == "threshold:tau=0.8"
    assert tuned.held_out["n"] == 256
    assert tuned.held_out["kept"]
    assert tuned.held_out["forwards"] == 20
    assert tuned.held_out["right"] == tuned.held_out["both"]
    assert tuned.held_out["baseline_right"] == tuned.held_out["baseline_both"]
    assert tuned.baseline["n"] == 256


def test_those_beyond_the_bound_and_those_slower_than_the_winner_leave_early():
    log = []
    tune(RUNS, Run("base"), Bound(5.0, 0.9), SPLITS, measured(log))
    most = {name: max(n for other, n in log if other == name) for name in TRUTH}
    assert most["threshold:tau=0.2"] <= 32
    assert most["threshold:tau=0.5"] <= 64
    assert most["threshold:tau=0.8"] == 256
    assert most["threshold:tau=0.95"] == 16


def test_many_fast_and_bad_ones_do_not_push_a_slow_and_good_one_out():
    runs = [Run(name) for name in BAD_AND_FAST] + [Run("threshold:tau=0.95")]
    tuned = tune(runs, Run("base"), Bound(5.0, 0.9), SPLITS, fast_and_bad())
    assert tuned.winner.run.strategy == "threshold:tau=0.95"
    assert tuned.winner.n == 256
    assert all(scored.n < 256 for scored in tuned.candidates if scored.run.strategy in BAD_AND_FAST)


def test_of_equally_fast_ones_the_more_accurate_wins():
    truth = {"base": (0.8, 100), "threshold:tau=0.7": (0.78, 20), "threshold:tau=0.8": (0.8, 20)}
    for names in itertools.permutations(name for name in truth if name != "base"):
        tuned = tune([Run(name) for name in names], Run("base"), Bound(6.0, 0.9), SPLITS, measured(None, truth))
        assert tuned.winner.run.strategy == "threshold:tau=0.8"
        assert [scored.n for scored in tuned.candidates] == [256, 256]


def test_a_tie_in_everything_has_a_winner():
    truth = {"base": (0.8, 100), "threshold:tau=0.7": (0.8, 20), "threshold:tau=0.8": (0.8, 20)}
    tuned = tune([Run(name) for name in truth if name != "base"], Run("base"), Bound(), SPLITS, measured(None, truth))
    assert tuned.winner.forwards == 20
    assert tuned.held_out["kept"]


@pytest.mark.parametrize("seed", range(20))
def test_nobody_leaves_who_may_be_the_answer(seed):
    """Made-up truths with luck of their own: whoever left is beyond the bound, or slower than the winner."""
    draw = random.Random(seed)
    truth = {"base": (0.85, 128)}
    truth |= {f"threshold:tau={place / 100}": (draw.uniform(0.3, 0.86), draw.randint(2, 60)) for place in range(12)}
    bound, shared = Bound(10.0, 0.9), measured(None, truth)
    runs = [Run(name) for name in truth if name != "base"]
    tuned = tune(runs, Run("base"), bound, SPLITS, shared)
    whole = {run: score(run, shared(run, SPLITS[0]), shared(Run("base"), SPLITS[0]), bound) for run in runs}
    kept = sorted((scored for scored in whole.values() if bound.kept(scored.pair)), key=Scored.order)
    assert (tuned.winner and tuned.winner.run) == (kept[0].run if kept else None)


def test_the_baseline_is_the_answer_when_nothing_is_sure():
    tuned = tune(RUNS, Run("base"), Bound(0.0, 0.99), (list(range(16)), list(range(16, 32))), measured())
    assert tuned.winner is None
    assert tuned.chosen == Run("base")
    assert tuned.held_out == {}
    assert tuned.nearest.run.strategy == "threshold:tau=0.95"


def test_more_items_are_asked_for_only_where_they_may_show_the_bound():
    bound = Bound(2.0, 0.9)
    assert bound.shown_by(paired([True] * 90 + [False] * 10, [True] * 100)) is None
    close = paired([True] * 99 + [False], [True] * 100)
    needed = bound.shown_by(close)
    assert needed > 100
    many = paired(([True] * 99 + [False]) * (needed // 100 + 2), [True] * 100 * (needed // 100 + 2), bound.z)
    assert bound.kept(many)


def test_preset_file_is_read_back(tmp_path):
    tuned = tune(RUNS, Run("base"), Bound(5.0, 0.9), SPLITS, measured())
    path = tmp_path / "fast.json"
    write_preset(tuned, path, {"task": "toy"})
    assert text_form(strategy(f"@{path}")) == "threshold:tau=0.8"
    assert json.loads(path.read_text())["held_out"]["n"] == 256


def test_grid_gives_every_combination_or_some():
    grid = parse_grid(["tau=0.5/0.9", "radius=2/4/8"])
    forms = candidates("localleap", grid)
    assert len(forms) == 6
    assert forms[0] == "localleap:tau=0.5,radius=2"
    assert candidates("localleap:relaxed=0.7", {"tau": ["1"]}) == ["localleap:relaxed=0.7,tau=1"]
    drawn = candidates("localleap", grid, 3, seed=1)
    assert len(set(drawn)) == 3
    assert drawn == candidates("localleap", grid, 3, seed=1)


@pytest.mark.parametrize("texts", [[], ["tau"], ["=1"], ["tau="]])
def test_bad_grids_are_refused(texts):
    with pytest.raises(InputError, match="--grid"):
        parse_grid(texts)


@pytest.mark.parametrize(("points", "confidence"), [(-1, 0.9), (101, 0.9), (2, 0.4), (2, 1.0)])
def test_bad_bounds_are_refused(points, confidence):
    with pytest.raises(InputError):
        Bound(points, confidence)


def test_feasibility_is_checked_first():
    bound = Bound(2.0, 0.9)
    assert bound.least(64) == pytest.approx(2.746, abs=0.001)
    needed = bound.enough()
    assert bound.least(needed) <= 2.0 < bound.least(needed - 1)
    bound.check(needed)
    with pytest.raises(InputError, match=rf"64.* 2\.7 .*--calibration {needed}"):
        bound.check(64)
    with pytest.raises(InputError, match="--loss 0"):
        Bound(0.0, 0.9).check(1000)


@pytest.mark.parametrize("count", [89, 128])
def test_a_candidate_equal_to_the_baseline_is_never_rejected(count):
    """At the bound's own least number of samples, and at the command line's default."""
    splits = (list(range(0, 2 * count, 2)), list(range(1, 2 * count, 2)))
    tuned = tune([Run("threshold:tau=0.95")], Run("base"), Bound(), splits, measured())
    assert tuned.winner.pair.difference == 0
    assert tuned.held_out["kept"]
