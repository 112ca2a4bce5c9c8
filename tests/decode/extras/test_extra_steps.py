"""Steps after the last mask: as many as allowed, ended by one that changes nothing."""

import torch

from starr.decode.extras.extra_steps import USED, ExtraSteps
from tests.decode.rows import canvas_of, hold, put, request, step_of
from tests.tiny import tiny_model


def opened(allowed: int):
    row = request("_", strategy="edit")
    canvas, guest = hold(canvas_of(row), 0, 1), ExtraSteps(tiny_model(), [row], [0])
    guest.allowed = torch.tensor([allowed])
    return put(canvas, step=torch.tensor([1]), total=torch.tensor([1])), guest


def applied(guest, canvas, action):
    return guest.apply(put(canvas, kept_open=canvas.window.kept_open & False), step_of(canvas, [[action]]))


def test_a_window_stays_open_for_so_many_steps():
    canvas, guest = opened(2)
    kept = []
    for _ in range(3):
        canvas = applied(guest, canvas, 3)
        kept.append(bool(canvas.window.kept_open))
    assert kept == [True, True, False]
    assert int(canvas.notes[USED]) == 0, "the next window begins anew"


def test_a_step_that_changes_nothing_is_the_last():
    canvas, guest = opened(9)
    canvas = applied(guest, canvas, 0)
    assert canvas.window.kept_open, "the first extra step has not been taken yet"
    assert not applied(guest, canvas, 0).window.kept_open


def test_rows_of_other_strategies_have_none():
    rows = [request("_", strategy="edit"), request("_")]
    guest, canvas = ExtraSteps(tiny_model(), rows, [0]), hold(canvas_of(*rows), 0, 1)
    assert guest.allowed.tolist() == [16, 0]
    assert guest.apply(canvas, step_of(canvas, [[1], [1]])).window.kept_open.tolist() == [True, False]
