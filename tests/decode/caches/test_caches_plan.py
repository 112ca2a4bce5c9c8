"""Every query plan against its slow transcription, over random histories with revocations, ragged rows and blocks."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.decode.advance import advance
from starr.decode.apply import write_actions
from starr.decode.canvas import Canvas, new_canvas
from starr.decode.query import observable, queries
from starr.decode.request import Request
from starr.decode.view import Action
from starr.options import ResolvedOptions
from tests.decode.rows import put
from tests.reference.ref_caches import RULES, RowState, queried
from tests.tiny import MASK

NO_EOS = torch.tensor([-1])
OPTIONS = {
    "none": st.just({}),
    "prefix": st.fixed_dictionaries({"refresh": st.integers(0, 4)}),
    "dual": st.fixed_dictionaries({"refresh": st.integers(0, 4)}),
    "vicinity": st.fixed_dictionaries(
        {"refresh": st.integers(0, 4), "before": st.integers(0, 3), "after": st.integers(0, 3), "warmup": st.just(2)}
    ),
    "dkv": st.fixed_dictionaries({"refresh": st.integers(1, 5)}),
    "dkv-prefill": st.fixed_dictionaries({"prompt_refresh": st.integers(0, 4)}),
    "dkv-pd": st.fixed_dictionaries({"refresh": st.integers(1, 5), "prompt_refresh": st.integers(0, 4)}),
    "dkv-greedy": st.fixed_dictionaries({"refresh": st.integers(1, 5), "window": st.integers(0, 5)}),
    "adaptive": st.fixed_dictionaries(
        {"refresh": st.integers(1, 4), "prompt_refresh": st.integers(1, 6), "share": st.sampled_from([0.0, 0.25, 0.6])}
    ),
}


def random_requests(rnd: random.Random, cache, block: int | None) -> list[Request]:
    """Ragged rows; some canvas positions are template tokens."""
    requests = []
    for _ in range(rnd.randint(1, 3)):
        start, length = rnd.randint(1, 6), rnd.randint(2, 12)
        masked = [False] * start + [rnd.random() < 0.8 for _ in range(length - 1)] + [True]
        tokens = [MASK if m else 5 for m in masked]
        options = ResolvedOptions(strategy=starr.strategy("starr"), cache=cache, block_length=block)
        requests.append(Request(tokens, masked, start, options))
    return requests


def random_actions(rnd: random.Random, canvas: Canvas) -> tuple[torch.Tensor, torch.Tensor]:
    """For every row at least one commit, fewer revocations, some revisions; as columns and actions (B, C)."""
    action = torch.zeros_like(canvas.tokens)
    for row in range(len(action)):
        window = range(int(canvas.window.start[row]), int(canvas.window.end[row]))
        masks = [i for i in window if canvas.masked[row, i]]
        held = [i for i in window if not canvas.masked[row, i] and not canvas.frozen[row, i]]
        commits = rnd.sample(masks, rnd.randint(1, min(3, len(masks)))) if masks else []
        action[row, commits] = int(Action.COMMIT)
        touched = rnd.sample(held, min(len(held), rnd.randint(0, max(0, len(commits) - 1))))
        for i in touched:
            action[row, i] = int(rnd.choice([Action.REVOKE, Action.REVISE]))
    index = torch.arange(canvas.columns).expand_as(action)
    return index, action


def observe_randomly(rnd: random.Random, canvas: Canvas, query: torch.Tensor, shift: bool) -> Canvas:
    seen = observable(query, shift) & canvas.in_window & ~canvas.frozen
    generator = torch.Generator().manual_seed(rnd.randint(0, 10**9))
    noise = torch.rand(canvas.tokens.shape, generator=generator).mul(8).round() / 8  # coarse: ties must go left
    return put(
        canvas,
        seen=canvas.last.seen | seen,
        buffered=canvas.buffered | query,
        confidence=torch.where(seen, noise, canvas.last.confidence),
    )


def read_row(canvas: Canvas, row: int, state: RowState) -> RowState:
    """The tensors of one row as sets, beside the history that the tensors do not hold."""
    columns = range(state.length)

    def chosen(grid: torch.Tensor) -> set[int]:
        return {i for i in columns if grid[row, i]}

    return replace(
        state,
        window=(int(canvas.window.start[row]), int(canvas.window.end[row])),
        masked=chosen(canvas.masked),
        observed=chosen(canvas.last.seen),
        confidence={i: float(canvas.last.confidence[row, i]) for i in columns},
        moved={i: float(canvas.notes["moved"][row, i]) for i in columns},
    )


def step_states(states: list[RowState], action: torch.Tensor, query: torch.Tensor, windows: list[int]) -> None:
    """Carry the history forward, from the actions alone."""
    for row, state in enumerate(states):
        done = {a: {i for i in range(state.length) if action[row, i] == int(a)} for a in Action}
        held = (state.everything - state.masked - done[Action.REVOKE]) | done[Action.COMMIT]
        state.held_after.append(held)
        state.written = done[Action.COMMIT] | done[Action.REVISE] | done[Action.REVOKE]
        state.committed = len(done[Action.COMMIT] | done[Action.REVISE])
        state.buffered |= {i for i in range(state.length) if query[row, i]}
        state.step, state.total = state.step + 1, state.total + 1
        if windows[row] != state.window[0]:
            state.step, state.held_after = 0, []


def run_plan(name: str, options: dict, seed: int, shift: bool, block: int | None) -> int:
    """Drive canvas and reference side by side; how many revocations there were."""
    rnd = random.Random(seed)
    cache = starr.caches()[[e.name for e in starr.caches()].index(name)].kind(**options)
    requests = random_requests(rnd, cache, block)
    canvas, done = advance(new_canvas(requests, torch.device("cpu")), NO_EOS)
    states = [RowState(len(r.tokens), r.start, {i for i, m in enumerate(r.masked) if not m}) for r in requests]
    for _ in range(40):
        moved = torch.tensor([[rnd.randint(0, 5) / 5 for _ in row] for row in canvas.tokens])
        canvas = canvas.noted({"moved": moved})
        states = [read_row(canvas, row, state) for row, state in enumerate(states)]
        query = queries(canvas, [(cache, torch.arange(len(requests)))], shift)
        for row, state in enumerate(states):
            if not done[row]:
                found = {i for i in range(canvas.columns) if query[row, i]}
                assert found == queried(name, options, state, shift)
        canvas = observe_randomly(rnd, canvas, query, shift)
        index, action = random_actions(rnd, canvas)
        after = write_actions(canvas, index, action, torch.full_like(index, 7), MASK)
        canvas, finished = advance(after, NO_EOS)
        step_states(states, action, query, canvas.window.start.tolist())
        done = done | finished
        if done.all():
            break
    return int(canvas.done.revocations.sum())


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_plan_is_its_slow_transcription(name, shift):
    revocations = []

    @settings(deadline=None, max_examples=25)
    @given(options=OPTIONS[name], seed=st.integers(0, 10**6), block=st.sampled_from([None, 3, 5]))
    def run(options, seed, block):
        revocations.append(run_plan(name, options, seed, shift, block))

    run()
    assert sum(revocations) > 0


def test_every_cache_has_a_transcription():
    assert set(RULES) == set(OPTIONS) == {entry.name for entry in starr.caches() if not entry.kind.block_causal}
