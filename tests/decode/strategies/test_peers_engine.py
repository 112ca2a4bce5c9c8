"""Peer strategies through the engine, where they use more of it than commits: moving ends, growing, revising."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import pytest

from starr.api import Options, build_request, generate, run_all
from starr.decode.caches import Cache
from starr.research.voting import vote
from tests.tiny import EOS, tiny_model

PROMPTS = ["a prompt", "b", "another longer prompt"]


@pytest.mark.parametrize("block_length", [5, 8])
def test_adablock_with_an_infinite_bar_is_fixed_blocks(block_length):
    model = tiny_model()
    common = {"max_tokens": 21, "block_length": block_length, "eos": "never"}
    ours = generate(model, PROMPTS, strategy="adablock:delimiter_tau=1e6", **common)
    theirs = generate(model, PROMPTS, strategy="threshold", **common)
    assert [(g.tokens, g.stats.forwards) for g in ours] == [(g.tokens, g.stats.forwards) for g in theirs]


def test_adablock_without_block_length_uses_its_own():
    model = tiny_model()
    ours = generate(model, "some", strategy="adablock:block=6,delimiters=none", max_tokens=20, eos="never")
    theirs = generate(model, "some", strategy="threshold", max_tokens=20, block_length=6, eos="never")
    assert ours.tokens == theirs.tokens


def test_adablock_ends_blocks_at_delimiters():
    model = tiny_model()
    every = "/".join(str(token) for token in range(3, 96, 2))
    form = f"adablock:delimiter_tau=0,share=1,delimiters={every}"
    run = generate(model, "some", strategy=form, max_tokens=24, eos="never", trace=True)
    ends = {step.window[1] for step in run.trace.steps}
    assert len(ends) > 2
    opened = [step for step in run.trace.steps if step.window[1] == 24]
    assert opened, "a window opens over the whole rest"


def test_daedal_grows_within_the_context_and_leaves_other_rows_alone():
    model = tiny_model(length=60)
    growing = Options(strategy="daedal:start_end=2,tail=4,block=8", max_tokens=8, eos="never", trace=True)
    requests = [build_request(model, prompt, growing) for prompt in PROMPTS]
    plain = [build_request(model, prompt, Options(strategy="threshold", max_tokens=12, seed=1)) for prompt in PROMPTS]
    mixed = run_all(model, [r for pair in zip(requests, plain, strict=True) for r in pair], 6)
    for request, result in zip(requests, mixed[::2], strict=True):
        assert result.stats.canvas_tokens + request.start == 60, "it grows until the context is full"
        assert len(result.trace.tokens) == result.stats.canvas_tokens
    assert [g.tokens for g in mixed[1::2]] == [g.tokens for g in run_all(model, plain, 3)]
    assert [g.tokens for g in mixed[::2]] == [run_all(model, [r], 1)[0].tokens for r in requests]


@pytest.mark.parametrize(("most", "context"), [(8, 256), (2048, 33)], ids=["its own bound", "the context"])
def test_daedal_without_room_stays_in_its_block(most, context):
    """A canvas that is too long to grow is decoded at once, block by block."""
    model, form = tiny_model(length=context), f"daedal:start_end=2,most={most},block=6"
    run = generate(model, "a prompt", strategy=form, max_tokens=24, eos="never", trace=True)
    done = 0
    for step in run.trace.steps:
        first = step.masked.index(True) // 6
        places = [at for at, act in enumerate(step.action) if act == 1]
        assert places
        assert {at // 6 for at in places} == {first}
        done += len(places)
    assert done == 24


def test_daedals_first_decoding_forward_sees_its_tail():
    form = "daedal:start_end=0,keep_end=0,tail=8"
    run = generate(tiny_model(), "a prompt", strategy=form, max_tokens=16, eos="never", trace=True)
    assert run.trace.steps[0].action == [0] * 16
    assert run.trace.steps[1].tokens[16:] == [EOS] * 8
    assert not any(run.trace.steps[1].masked[16:])


@dataclass(frozen=True, kw_only=True)
class Everything(Cache):
    """A buffer that is written anew at every step."""

    name: ClassVar[str] = "everything"
    paper: ClassVar[str] = "none"

    def query(self, canvas):
        return canvas.valid


def test_rows_with_a_buffer_stand_beside_a_growing_row():
    model = tiny_model(length=60)
    growing = build_request(model, "a prompt", Options(strategy="daedal:start_end=2", max_tokens=8, eos="never"))
    cached = Options(strategy="confidence", cache=Everything(), max_tokens=12, eos="never")
    buffered = [build_request(model, prompt, cached) for prompt in PROMPTS]
    together = run_all(model, [growing, *buffered], 4)[1:]
    assert [g.tokens for g in together] == [g.tokens for g in run_all(model, buffered, 3)]


def test_daedal_stops_at_its_own_bound_and_writes_its_tail():
    model = tiny_model()
    result = generate(
        model, "a prompt", strategy="daedal:start_end=2,most=40,tail=8,expand=8", max_tokens=16, eos="never", trace=True
    )
    assert result.stats.canvas_tokens == 40
    sure = generate(
        model, "a prompt", strategy="daedal:start_end=0,keep_end=0,tail=8", max_tokens=16, eos="never", trace=True
    )
    assert sure.stats.canvas_tokens == 24
    assert sure.trace.tokens[16:] == [EOS] * 8
    assert len(sure.tokens) == 16


def test_edit_revises_and_ends():
    model = tiny_model()
    result = generate(model, "a prompt", strategy="edit:preset=speed", max_tokens=24, eos="never", trace=True)
    assert result.stats.revisions > 0
    assert result.stats.forwards <= 24 + 16


def test_hierarchy_revokes_only_when_asked():
    model = tiny_model()
    plain, revoking = (
        generate(model, PROMPTS, strategy=form, max_tokens=24, eos="never")
        for form in ("hierarchy", "hierarchy:revoke=true,revoke_below=0.9")
    )
    assert sum(g.stats.revocations for g in plain) == 0
    assert sum(g.stats.revocations for g in revoking) > 0


def test_voting_reads_a_real_trace():
    model = tiny_model()
    run = generate(model, "a prompt", strategy="peaks", max_tokens=12, block_length=4, trace=True)
    found = vote(run.trace, lambda text: (re.findall(r"\w", text) or [None])[0], ends=model.spec.eos_ids)
    assert len(found.answers) == len(run.trace.steps)
    last = vote(run.trace, lambda text: text, weights="exp", alpha=200.0, ends=model.spec.eos_ids)
    assert last.answer == run.text
