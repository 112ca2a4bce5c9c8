"""Steps after the last mask: as many as allowed, ended by one that changes nothing."""

from dataclasses import replace

import torch

from starr.decode.extras.extra_steps import ALLOWED, USED, ExtraSteps
from tests.decode.rows import canvas_of, hold, request
from tests.tiny import tiny_model

YES, NO = torch.tensor([True]), torch.tensor([False])


def opened(allowed: int):
    row = request("_", strategy="edit")
    canvas = hold(canvas_of(row), 0, 1)
    canvas = canvas.noted({ALLOWED: torch.tensor([allowed]), USED: torch.tensor([0])})
    return replace(canvas, step=torch.tensor([1]), total=torch.tensor([1])), ExtraSteps(tiny_model(), [row], [0])


def test_a_window_stays_open_for_so_many_steps():
    canvas, guest = opened(2)
    kept = []
    for _ in range(4):
        canvas, keeps = guest.keeps_open(canvas, YES)
        kept.append(bool(keeps))
        if not keeps:
            break
    assert kept == [True, True, False]
    assert int(canvas.notes[USED]) == 0, "the next window begins anew"


def test_a_step_that_changes_nothing_is_the_last():
    canvas, guest = opened(9)
    canvas, first = guest.keeps_open(canvas, NO)
    assert first, "the first extra step has not been taken yet"
    assert not guest.keeps_open(canvas, NO)[1]


def test_rows_of_other_strategies_have_none():
    rows = [request("_", strategy="edit"), request("_")]
    notes = ExtraSteps.begin(rows, canvas_of(*rows))
    assert notes[ALLOWED].tolist() == [16, 0]
    canvas = canvas_of(*rows).noted(notes)
    assert ExtraSteps(tiny_model(), rows, [0]).keeps_open(canvas, torch.ones(2).bool())[1].tolist() == [True, False]
