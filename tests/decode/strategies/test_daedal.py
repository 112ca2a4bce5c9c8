from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.daedal import Daedal
from starr.decode.view import Decision, StepView
from tests.decode.strategies.driver import World, carried, legal, row_of
from tests.reference.ref_daedal import RefDaedal

MOST = 24


def insert(world: World, row: int, count: int, behind: int, token: int) -> None:
    """Grow one row of the world, as an engine would; token -1 is a mask."""
    keep = world.size[1] - count
    for name, fill in (("tokens", max(token, 0)), ("masked", token < 0), ("frozen", False)):
        values = getattr(world, name).clone()
        values[row, behind + 1 + count :] = getattr(world, name)[row, behind + 1 : keep]
        values[row, behind + 1 : behind + 1 + count] = fill
        setattr(world, name, values)
    world.widths = world.widths + count * (torch.arange(world.size[0]) == row)
    world.inside = torch.arange(world.size[1]) < world.widths[:, None]


def check_row(row: int, decision: Decision, view, said) -> None:
    action, grow, at, tail = said
    width = int(view.width[row])
    assert decision.action[row, :width].tolist() == action
    assert int(decision.extras["grow"][row]) == grow
    assert grow == 0 or int(decision.extras["grow_at"][row]) == at
    assert grow == 0 or int(decision.extras["grow_token"][row]) == (2 if tail else -1)


def with_room(world: World, context: int) -> StepView:
    """The next view, with what a context of so many positions leaves."""
    view = world.view()
    room = (context - view.width).clamp(min=0)[:, None].expand_as(view.tokens)
    return replace(view, extras={**view.extras, "room": room})


def run(strategy: Daedal, world: World, steps: int, context: int = 999) -> int:
    """Compare every step with the reference; returns how many masks were inserted."""
    references = [RefDaedal(strategy, [2, 5]) for _ in world.widths]
    carry, inserted = None, 0
    for _ in range(steps):
        view = with_room(world, context)
        decision, carry = strategy.decide(view, carried(strategy, view, carry))
        assert legal(decision, view)
        for index, reference in enumerate(references):
            row = row_of(view, index)
            if row.step == 0:
                reference.open()
            check_row(index, decision, view, reference.step(row, max(context, row.width)))
        assert ((decision.extras["grow"] == 0) | (view.width + decision.extras["grow"] <= strategy.most)).all()
        closed = world.apply(decision, view)
        for index in (~closed & (decision.extras["grow"] > 0)).nonzero().flatten().tolist():
            count, at, token = (int(decision.extras[name][index]) for name in ("grow", "grow_at", "grow_token"))
            insert(world, index, count, at, token)
            inserted += count
    return inserted


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**31),
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
    st.sampled_from([0.05, 0.3, 1.5]),
    st.sampled_from([0.0, 0.3, 1.5]),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.sampled_from([0, 3]),
    st.booleans(),
    st.sampled_from([6, 15, 999]),
)
def test_equals_reference(seed, widths, start_end, keep_end, expand_below, tail, coarse, context):
    strategy = Daedal(
        tau=0.75, block=5, expand=4, start_end=start_end, keep_end=keep_end, expand_below=expand_below,
        reach=4, tail=tail, most=MOST, ends="2/5",
    )  # fmt: skip
    run(strategy, World(seed, [*widths, MOST], coarse), steps=14, context=context)


def test_the_canvas_grows_and_stops_at_its_bound():
    world = World(3, [4, MOST])
    assert run(Daedal(start_end=1.5, reach=4, most=MOST, ends="2/5"), world, steps=4) > 0
    assert int(world.widths[0]) <= MOST


def test_without_room_in_the_context_nothing_grows():
    assert run(Daedal(start_end=1.5, keep_end=0.0, reach=4, most=MOST, ends="2/5"), World(3, [4]), 6, context=4) == 0


def test_without_end_of_text_ids_nothing_grows():
    assert run_plain(Daedal()) == 0
    assert run_plain(Daedal(ends="none")) == 0


def run_plain(strategy: Daedal) -> int:
    world, carry, grown = World(1, [12, 6]), None, 0
    for _ in range(10):
        view = with_room(world, 999)
        decision, carry = strategy.decide(view, carried(strategy, view, carry))
        grown += int(decision.extras["grow"].sum())
        world.apply(decision, view)
    return grown


def test_end_of_text_ids_come_from_the_model():
    model = SimpleNamespace(spec=SimpleNamespace(eos_ids=(9, 4), mask_id=1, shape=SimpleNamespace(vocab_size=96)))
    assert Daedal().bind(model).ends == "9/4"
    assert Daedal(ends="3").bind(model).ends == "3"
