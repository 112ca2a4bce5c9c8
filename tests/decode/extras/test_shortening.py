"""A canvas that is cut: what is gone is neither decoded nor computed."""

import torch

from starr.api import build_request, run_all
from starr.decode.extras.shortening import Shortening, shortened
from starr.options import Options
from tests.decode.rows import canvas_of, request
from tests.tiny import MASK, form_of, tiny_model


def test_what_is_cut_off_is_padding():
    canvas = canvas_of(request("______"), request("____"))
    cut = shortened(canvas, torch.tensor([4, 5]))
    assert cut.masked.sum(dim=1).tolist() == [3, 4]
    assert cut.frozen[0, 4:].all()
    assert (cut.window.end.tolist(), cut.goal.tolist()) == ([4, 5], [4, 5])
    assert cut.valid.sum(dim=1).tolist() == [4, 5]


def test_rows_that_do_not_end_or_keep_a_constraint_are_not_cut():
    strategy = form_of("learn2pd")
    assert Shortening.serves(request("___", strategy=strategy))
    assert not Shortening.serves(request("___", strategy=f"{strategy},cut=false"))
    assert not Shortening.serves(request("___", strategy=strategy, ends=False))
    assert not Shortening.serves(request("___"))


def test_positions_fall_when_an_end_is_in_sight():
    """The same rows with and without the cut: those that are cut cost less, and none ends in a mask."""
    model = tiny_model()
    runs = {}
    for cut in ("true", "false"):
        options = Options(strategy=f"{form_of('learn2pd')},tau=2,cut={cut}", max_tokens=20)
        runs[cut] = run_all(model, [build_request(model, f"abc {n}", options) for n in range(12)], 5)
    shorter = [n for n, run in enumerate(runs["true"]) if run.stats.row_positions < len(f"abc {n}") + 21]
    assert shorter
    for n, (with_cut, without) in enumerate(zip(runs["true"], runs["false"], strict=True)):
        assert MASK not in with_cut.tokens
        if n in shorter:
            assert with_cut.stats.positions < without.stats.positions
        else:
            assert with_cut.tokens == without.tokens
