"""Constraints on block-causal models: only the open block is decided, and the whole canvas stays completable."""

from __future__ import annotations

import json
import random
import re

import jsonschema
import pytest

import starr
from benchmarks.structured_runs import (
    BLOCK,
    BLOCKS,
    EXPRESSIONS,
    block_model,
    caches,
    constrained,
    draw,
    fault,
    runs,
    usable,
)
from starr.api import run_all
from starr.decode.request import check_request
from starr.errors import InputError
from starr.model.load import load
from tests.decode.test_blocks import WHOLE
from tests.model import released

BORDERS = (1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3)
every_kind = pytest.mark.parametrize("kind", BLOCKS)


def prompt_of(length: int) -> list[int]:
    return [3 + place % 26 for place in range(length)]


def test_random_runs_of_every_family_strategy_and_cache_end_in_the_language():
    """A part of what ``benchmarks.structured_runs --attention blocks`` makes."""
    seen, faults = runs(224, seed=21, attention="blocks")
    assert faults == []
    assert set(seen["strategies"]) == set(usable()) - set(WHOLE)
    assert set(seen["caches"]) == set(caches(blocks=True))
    assert len(seen["models"]) >= 4
    assert seen["canvas"]["holes"] > 3


@every_kind
def test_a_row_gives_the_same_tokens_alone_and_in_any_batch(kind):
    model, rng = block_model(5, kind), random.Random(kind)
    drawn = [draw(model, rng) for _ in range(10)]
    free = [constrained(model, max_tokens=9, seed=n, strategy="threshold") for n in range(3)]
    rows = [row for row, _, _ in drawn]
    mixed = run_all(model, [*rows[:5], *free, *rows[5:]], 6)
    alone = [run_all(model, [row], 1)[0] for row in [*rows[:5], *free, *rows[5:]]]
    assert [g.tokens for g in mixed] == [g.tokens for g in alone]
    assert [fault(row, pattern, g) for (row, pattern, _), g in zip(drawn[:5], mixed[:5], strict=True)] == [None] * 5


@every_kind
@pytest.mark.parametrize("length", BORDERS)
def test_exact_gives_what_recomputing_everything_gives(kind, length):
    model = block_model(3, kind)
    for strategy in ("threshold", "edit", "starr"):
        options = {"strategy": strategy, "regex": r"([a-z]+ )*[a-z]+\.", "max_tokens": 21}
        exact, plain = (
            run_all(model, [constrained(model, prompt_of(length), cache=cache, **options)], 1)[0]
            for cache in ("exact", "none")
        )
        assert (exact.tokens, exact.stats.forwards) == (plain.tokens, plain.stats.forwards)
        assert re.fullmatch(options["regex"], exact.text)


def test_a_forward_that_gives_a_blocks_first_token_computes_nothing_else():
    """Fast-dLLM v2: the prompt's forward is prefill alone, with a constraint as without."""
    model = block_model(3, "fast_dllm_v2")
    row = constrained(model, prompt_of(BLOCK), regex="[a-z]{16}", max_tokens=16, cache="exact", eos="never")
    stats = run_all(model, [row], 1)[0].stats
    assert (stats.prefill.forwards, stats.prefill.positions) == (1, BLOCK)
    assert (stats.seal.forwards, stats.seal.positions) == (1, BLOCK)


@every_kind
@pytest.mark.parametrize("length", [3, BLOCK])
def test_a_canvas_of_exactly_the_shortest_length_is_enough(kind, length):
    """Later blocks are reckoned with, and the masks that only fill the last block are not."""
    model = block_model(2, kind)
    for pattern in [*EXPRESSIONS, "[xyz]{19}", "(x|y){11}q{6}"]:
        row = constrained(model, prompt_of(length), regex=pattern, max_tokens=24)
        shortest = row.constraint.automaton.shortest
        row = constrained(model, prompt_of(length), regex=pattern, max_tokens=max(shortest, 1))
        assert re.fullmatch(pattern, run_all(model, [row], 1)[0].text)
        if shortest > 1:
            with pytest.raises(InputError, match=f"at least {shortest} tokens, max_tokens is {shortest - 1}"):
                check_request(constrained(model, prompt_of(length), regex=pattern, max_tokens=shortest - 1), model)


@every_kind
def test_one_token_a_step_from_left_to_right_commits_what_the_last_block_forces(kind):
    """The first block decides which of two long texts it is; the blocks behind it have no choice left."""
    texts = ["x" + "q" * 18, "y" + "k" * 18]
    for seed in range(4):
        model = block_model(seed, kind)
        found = starr.generate(model, "abc", choices=texts, max_tokens=19, strategy="confidence")
        assert found.text in texts


@pytest.mark.parametrize("length", [2, BLOCK - 1])
def test_what_is_cut_off_is_free(length):
    """The positions that only fill the last block are not the answer's: they hold what the model proposes."""
    model = block_model(4, "sdar")
    row = constrained(model, prompt_of(length), regex="x{4}", max_tokens=4, trace=True, eos="never")
    assert row.surplus > 0
    found = run_all(model, [row], 1)[0]
    assert (found.text, found.trace.length) == ("xxxx", 4)
    assert all(len(step.allowed) <= 4 and 0 not in step.allowed for step in found.trace.steps)


def test_a_trace_says_what_was_allowed_in_every_block():
    model = block_model(6, "fast_dllm_v2")
    trace = starr.generate(model, prompt_of(5), regex="[a-c]{9}[0-9]{9}", max_tokens=18, trace=True).trace
    assert trace.constraint.startswith("regex: ")
    for step in trace.steps:
        for masked, proposal, chosen in zip(step.masked, step.proposal, step.allowed, strict=True):
            count, first = trace.sets[chosen]
            if masked and proposal and count <= len(first):
                assert model.tokenizer.piece(proposal) in first


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}, "tag": {"enum": ["a", "b"]}},
    "required": ["n", "ok", "tag"],
}


@pytest.mark.parametrize("family", ["sdar", "sdar_moe", "llada2", "fast_dllm"])
def test_released_formats_keep_schemas_expressions_and_choices(family, tmp_path):
    """With the family's own strategy and cache, behind prompts that end around the borders of blocks."""
    made = getattr(released, family)()
    model = load(made.write(tmp_path / "model"))
    block = model.spec.block_length
    wanted = [{"json_schema": SCHEMA}, {"regex": r"-?[0-9]{1,5}(\.[0-9]{2})?"}, {"choices": ["yes", "no", "perhaps"]}]
    prompts = [[65 + place % 20 for place in range(length)] for length in (1, block - 1, block, block + 1)]
    rows = [constrained(model, prompt, max_tokens=70, **each) for prompt in prompts for each in wanted]
    rows += [row.change(seed=1) for row in rows[:3]]
    together = run_all(model, rows, 7)
    for row, found in zip(rows, together, strict=True):
        assert model.spec.mask_id not in found.tokens
        assert found.finish_reason == "stop"
        kind = row.constraint.spec.kind
        if kind == "json_schema":
            jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(found.text))
        elif kind == "regex":
            assert re.fullmatch(wanted[1]["regex"], found.text)
        else:
            assert found.text in wanted[2]["choices"]
    alone = [run_all(model, [row], 1)[0] for row in rows[:6]]
    assert [g.tokens for g in alone] == [g.tokens for g in together[:6]]
