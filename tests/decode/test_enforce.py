"""The safety rules against random decisions, and each by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import starr
from starr.decode.confidence import unsaturated
from starr.decode.enforce import Bounds, enforce
from starr.decode.extras.growth import Growth
from starr.decode.strategies.base import Strategy
from starr.decode.view import Action, Decision, StepView, actions
from tests.decode.rows import canvas_of, request, step_of
from tests.tiny import MASK, tiny_model

K, C, R, E = (int(a) for a in Action)


@dataclass(frozen=True, kw_only=True)
class Spiteful(Strategy):
    """Commits nothing and revokes everything."""

    name: ClassVar[str] = "spiteful"
    paper: ClassVar[str] = "none"

    def revokes(self) -> bool:
        return True

    def decide(self, view, carry):
        return Decision(actions(torch.zeros_like(view.masked), view.held)), carry


def view_of(masked: list[bool], frozen: list[bool], confidence: list[float]) -> StepView:
    row = torch.tensor([confidence])
    zero = torch.zeros(1, dtype=torch.int64)
    return StepView(
        tokens=zero[None].expand(1, len(masked)),
        masked=torch.tensor([masked]),
        frozen=torch.tensor([frozen]),
        proposal=zero[None].expand(1, len(masked)),
        confidence=row,
        best=row,
        step=zero,
        width=zero + len(masked),
        windows=zero + 1,
        block=zero + len(masked),
    )


def bounds(view, *, free=False, last=False, strict=True, spent=None) -> Bounds:
    places = torch.zeros_like(view.masked) if spent is None else torch.tensor([spent])
    return Bounds(*(torch.tensor([flag]) for flag in (free, last, strict)), places)


def done(action, view, *, free=False, last=False, strict=True, spent=None, **more) -> list[int]:
    decision = Decision(torch.tensor([action], dtype=torch.int8), **more)
    return enforce(decision, view, bounds(view, free=free, last=last, strict=strict, spent=spent))[0].tolist()


cells = st.lists(
    st.tuples(st.sampled_from(["masked", "held", "frozen"]), st.integers(0, 3), st.integers(0, 8)),
    min_size=1,
    max_size=24,
)


@given(cells, st.booleans(), st.booleans(), st.booleans(), st.data())
@settings(deadline=None, max_examples=300)
def test_rules_hold_for_any_decision(row, literal, strict, with_threshold, data):
    state = [s for s, _, _ in row]
    asked = [a for _, a, _ in row]
    confidence = [c / 8 for _, _, c in row]
    view = view_of([s == "masked" for s in state], [s == "frozen" for s in state], confidence)
    more = {"threshold": torch.full((1, len(row)), 0.5)} if with_threshold else {}
    spent = data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row)))
    action = done(asked, view, free=literal, strict=strict, spent=spent, **more)
    for s, wish, act in zip(state, asked, action, strict=True):
        assert act == K or {"masked": act == C, "held": act in (R, E), "frozen": False}[s]
        assert act in (K, wish) or (act == C and not literal)
    commits, revokes = action.count(C), action.count(R)
    if not literal:
        assert commits >= 1 or "masked" not in state
        if strict:
            assert revokes < commits or revokes == 0
        else:
            wished = [s == "held" and wish == R for s, wish in zip(state, asked, strict=True)]
            expected = [wish and not over for wish, over in zip(wished, spent, strict=True)]
            assert [act == R for act in action] == expected, "all that the strategy wants, but for those"
    if "masked" in state and C not in [w for s, w in zip(state, asked, strict=True) if s == "masked"] and not literal:
        best = max(c for s, c in zip(state, confidence, strict=True) if s == "masked")
        first = next(i for i, s in enumerate(state) if s == "masked" and confidence[i] == best)
        assert action[first] == C
        assert commits == 1


def test_the_most_doubted_revocations_stay():
    view = view_of([True, True, True, False, False, False], [False] * 6, [0.9, 0.9, 0.9, 0.1, 0.3, 0.2])
    asked = [C, C, C, R, R, R]
    assert done(asked, view) == [C, C, C, R, K, R]
    threshold = torch.tensor([[0.5, 0.5, 0.5, 0.2, 0.9, 0.9]])
    assert done(asked, view, threshold=threshold) == [C, C, C, K, R, R]
    doubt = torch.tensor([[0.0, 0.0, 0.0, 3.0, 2.0, 1.0]])
    assert done(asked, view, threshold=threshold, doubt=doubt) == [C, C, C, R, R, K]


def test_ties_go_to_the_lower_position():
    view = view_of([True, True, False, False], [False] * 4, [0.5, 0.5, 0.2, 0.2])
    assert done([K, K, K, K], view) == [C, K, K, K]
    assert done([C, C, R, R], view) == [C, C, R, K]


def test_the_last_step_commits_every_mask():
    view = view_of([True, True, False], [False] * 3, [0.1, 0.2, 0.3])
    assert done([K, K, K], view, free=True, last=True) == [C, C, K]


def test_a_growing_step_need_not_commit():
    """The guest that grows canvases frees such steps of the progress rules, and no others; not the row's last."""
    row = request("__", strategy="daedal")
    guest = Growth(tiny_model(), [row], [0])
    for masks, total, expected in ((4, 0, [K, K]), (0, 0, [K, C]), (4, 99, [K, C])):
        canvas = replace(canvas_of(row), total=torch.tensor([total]))
        step = step_of(canvas, [[K, K]], extras={"grow": torch.tensor([masks])})
        assert guest.amend(replace(step, action=torch.tensor([[K, C]]))).action[0].tolist() == expected


def test_forced_commits_follow_the_order_that_a_decision_carries():
    view = view_of([True, True, True], [False] * 3, [0.9, 0.5, 0.1])
    order = torch.tensor([[0.0, 2.0, 1.0]])
    assert done([K, K, K], view) == [C, K, K]
    assert done([K, K, K], view, order=order) == [K, C, K]
    assert done([K, K, K], view, order=torch.full((1, 3), torch.nan)) == [C, K, K], "NaN: nothing was said"


def test_saturated_confidences_are_told_apart_by_their_odds():
    view = view_of([True] * 4, [False] * 4, [1.0, 1.0, 0.98, 1.0])
    view = replace(view, sure=unsaturated(view.confidence, torch.tensor([[12.0, 15.0, 20.0, 15.0]])))
    assert done([K] * 4, view) == [K, C, K, K]


@pytest.mark.parametrize(
    ("enforce", "chances"), [("strict", 0), ("safe", 0), ("bounded", 2), ("bounded", 0), ("bounded", 5)]
)
def test_a_strategy_that_revokes_all_it_can_ends_within_the_bound(enforce, chances):
    """The worst that a strategy can do: never commit, always revoke everything. The proof's count holds exactly."""
    model = tiny_model()
    given = {"max_tokens": 9, "eos": "never", "enforce": enforce, "max_revocations": chances, "trace": True}
    run = starr.generate(model, "a prompt", strategy=Spiteful(), **given)
    assert run.stats.forwards == run.stats.commits
    assert run.stats.revocations == run.stats.commits - 9
    assert run.stats.forwards <= 9 * (1 + chances)
    if chances:
        assert run.stats.forwards == 9 * (1 + chances) - chances, "the last mask closes the row before it is revoked"
    revoked = [sum(step.action[at] == R for step in run.trace.steps) for at in range(9)]
    assert max(revoked) <= chances


@dataclass(frozen=True, kw_only=True)
class Whim(Strategy):
    """Commits, revokes and revises at random, also in windows that are full."""

    name: ClassVar[str] = "whim"
    paper: ClassVar[str] = "none"
    signals: ClassVar[frozenset[str]] = frozenset({"noise"})

    def needs(self):
        return {"extra_steps": 2}

    def revokes(self) -> bool:
        return True

    def decide(self, view, carry):
        return Decision((view.noise * 4).to(torch.int8)), carry


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["strict", "safe", "bounded"]),
    st.integers(0, 3),
    st.sampled_from([None, 4, 5]),
    st.sampled_from(["none", "dual"]),
    st.sampled_from(["normal", "never"]),
    st.sampled_from(["none", "prophet", "eos"]),
    st.sampled_from(["a prompt", "a [MASK:9] b [MASK:3]"]),
    st.integers(0, 99),
)
@example("bounded", 1, 4, "dual", "normal", "none", "a prompt", 43)  # revokes in the last extra step of a window
def test_the_count_of_the_proof_holds_on_every_path(mode, chances, block, cache, eos, stop, prompt, seed):
    """Without the limit of steps: blocks, full windows kept open, revisions, end-of-texts, stop rules, templates."""
    given = {"enforce": mode, "max_revocations": chances, "block_length": block, "cache": cache, "seed": seed}
    given |= {"max_tokens": 12, "max_forwards": 10_000, "trace": True, "strategy": Whim()}
    if "[MASK" in prompt:
        run = starr.infill(tiny_model(), prompt, **given)
    else:
        run = starr.generate(tiny_model(), prompt, eos=eos, stop_rule=stop, **given)
    length = run.trace.length
    windows = 1 if block is None else -(-length // block)
    assert run.stats.forwards <= 12 * (1 + chances * (mode == "bounded")) + 2 * windows
    revoked = [0] * length
    for step in run.trace.steps:
        for at, act in enumerate(step.action, start=step.window[0]):
            revoked[at] += act == R
        assert C in step.action or True not in step.masked
    assert mode != "bounded" or max(revoked) <= chances
    assert MASK not in run.tokens


def test_strategies_that_end_by_themselves_get_their_rule():
    model = tiny_model()
    given = {"max_tokens": 24, "eos": "never", "seed": 3, "trace": True}
    for form in ("remdm:eta=0.3", "wino:tau_verify=1.5", "saber", "hierarchy:revoke=true", "remdm_llada:loops=6"):
        run = starr.generate(model, "a prompt", strategy=form, **given)
        assert all(step.decided == step.action for step in run.trace.steps[:-1]), form
        assert run.stats.revocations > 0, form
    strict = starr.generate(model, "a prompt", strategy="remdm:eta=0.3", enforce="strict", **given)
    assert any(step.decided != step.action for step in strict.trace.steps)
