"""The hook: a guest of somebody's own reaches every step, for its rows alone, and leaves the others as they were."""

from dataclasses import replace
from typing import get_args

import pytest
import torch

import starr
from starr.api import Options, build_request, run_all
from starr.decode import batch, extras
from starr.decode.extras import GUESTS
from starr.decode.extras.base import Guest, Hook, invite
from starr.decode.extras.extra_steps import ExtraSteps
from starr.decode.extras.movement import Movement
from starr.decode.extras.shadow import Shadow
from starr.decode.view import Action
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

    def plan(self, wishes):
        self.calls.append("plan")
        return wishes

    def prepare(self, call):
        self.calls.append("prepare")
        return call.cost_more(dict.fromkeys(self.order, 1000))

    def propose(self, request, call):
        self.calls.append("propose")
        return request

    def observe(self, canvas, seen):
        self.calls.append("observe")
        return canvas

    def amend(self, step):
        self.calls.append("amend")
        mine = torch.zeros(len(step.action), 1).bool().index_fill(0, self.rows, True)
        return replace(step, written=torch.where(mine & (step.action == Action.COMMIT), LETTER, step.written))

    def apply(self, canvas, step):
        self.calls.append("apply")
        return canvas.noted({"written": canvas.done.commits})


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
    assert set(OneLetter.calls) == set(get_args(Hook))


def test_a_guest_may_refuse(monkeypatch):
    with_guest(monkeypatch)
    with pytest.raises(InputError, match="One letter"):
        starr.generate(tiny_model(), "a", max_tokens=31, seed=7)


def test_guests_that_nobody_wants_are_not_there():
    model = tiny_model()
    assert invite(GUESTS, model, [request("__")]) == []
    rows = [request("__", strategy="wino"), request("__", cache="adaptive"), request("__", strategy="edit")]
    assert {type(guest) for guest in invite(GUESTS, model, rows)} == {Shadow, Movement, ExtraSteps}


def test_a_plain_row_calls_no_hook(monkeypatch):
    with_guest(monkeypatch)
    OneLetter.calls.clear()
    starr.generate(tiny_model(), "a", max_tokens=8, seed=1)
    assert OneLetter.calls == []


def test_every_guest_has_only_hooks_of_the_table():
    own = {name for kind in GUESTS for name in vars(kind) if name in get_args(Hook)}
    assert (
        own
        == set(get_args(Hook))
        == {name for name in vars(Guest) if name[0] != "_"} - {"name", "queries", "serves", "check"}
    )
