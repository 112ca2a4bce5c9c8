"""The hook: a guest of somebody's own reaches every step, for its rows alone, and leaves the others as they were."""

import pytest
import torch

import starr
from starr.api import Options, build_request, run_all
from starr.decode import batch, extras
from starr.decode.extras import GUESTS
from starr.decode.extras.base import Guest, Guests
from starr.decode.view import Action, Decision
from starr.errors import InputError
from tests.decode.rows import request
from tests.tiny import tiny_model

LETTER = 50


class OneLetter(Guest):
    """Rows with seed 7 may say nothing but one letter; counts its calls."""

    calls: list[str] = []  # noqa: RUF012

    @classmethod
    def serves(cls, request):
        return request.options.seed == 7

    @classmethod
    def check(cls, request):
        if request.length > 30:
            raise InputError("One letter is enough.")

    @classmethod
    def begin(cls, requests, canvas):
        return {"written": torch.zeros_like(canvas.step)}

    def propose(self, request, canvas, observed):
        self.calls.append("propose")
        return request

    def amend(self, action, written, view, canvas):
        self.calls.append("amend")
        mine = torch.zeros(len(action), 1).bool().index_fill(0, self.rows, True)
        return action, torch.where(mine & (action == Action.COMMIT), LETTER, written)

    def apply(self, canvas, decision):
        self.calls.append("apply")
        return canvas.noted({"written": canvas.commits})

    def positions(self, request, length, width):
        return 1000


def with_guest(monkeypatch):
    kinds = (*GUESTS, OneLetter)
    monkeypatch.setattr(batch, "GUESTS", kinds)
    monkeypatch.setattr(extras, "GUESTS", kinds)


def test_a_guest_serves_its_rows_and_no_others(monkeypatch):
    model = tiny_model()
    rows = [build_request(model, p, Options(max_tokens=10, seed=s, eos="never")) for p, s in (("a", 7), ("bc", 3))]
    before = run_all(model, rows, 2)
    with_guest(monkeypatch)
    mine, other = run_all(model, rows, 2)
    assert mine.tokens == [LETTER] * 10
    assert mine.stats.positions == mine.stats.forwards * (11 + 1 + 1000)
    assert other.tokens == before[1].tokens
    assert other.stats.positions == before[1].stats.positions
    assert {"propose", "amend", "apply"} <= set(OneLetter.calls)


def test_a_guest_may_refuse(monkeypatch):
    with_guest(monkeypatch)
    with pytest.raises(InputError, match="One letter"):
        starr.generate(tiny_model(), "a", max_tokens=31, seed=7)


def test_guests_that_nobody_wants_are_not_there():
    model = tiny_model()
    assert Guests(GUESTS, model, [request("__")]).present == []
    rows = [request("__", strategy="wino"), request("__", cache="adaptive"), request("__", strategy="edit")]
    assert {type(guest).__name__ for guest in Guests(GUESTS, model, rows).present} == {
        "Shadow",
        "Movement",
        "ExtraSteps",
    }


def test_freed_rows_are_added_to_the_literal_ones():
    guests = Guests(GUESTS, tiny_model(), [request("__", strategy="daedal"), request("__")])
    decision = Decision(torch.zeros(2, 2), extras={"grow": torch.tensor([3, 0])})
    assert guests.free(decision, torch.tensor([False, True])).tolist() == [True, True]
    assert guests.free(Decision(torch.zeros(2, 2)), torch.tensor([False, True])).tolist() == [False, True]
