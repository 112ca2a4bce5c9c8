"""Constraints through the engine: nothing ends outside the language, and nothing else changes."""

import json
import random
import re

import jsonschema
import pytest

import starr
from benchmarks.structured_runs import EXPRESSIONS, caches, constrained, draw, fault, model_of, runs, usable
from starr.api import run_all
from starr.decode.engine import Engine
from starr.decode.extras.constraints.guest import RowWalk, reconcile
from starr.decode.extras.constraints.walks import GOES_ON, MASK
from starr.decode.request import check_request
from starr.decode.trace import check_trace
from starr.decode.view import Action
from starr.errors import InputError
from starr.viewer.pack import pack
from tests.decode.extras.constraints.schemas import SCHEMAS
from tests.decode.extras.constraints.toy import VOCABULARY, reach_of, walk_of

PROMPT = "Tom has 3 apples and buys 4. How many has he?"


@pytest.fixture(scope="module")
def bundled():
    return starr.load()


@pytest.fixture(scope="module")
def model():
    return model_of(3, shift=False)


def test_random_runs_of_every_strategy_and_cache_end_in_the_language():
    """A part of the 5,000 that benchmarks/structured_runs.py makes."""
    seen, faults = runs(180, seed=20)
    assert faults == []
    assert set(seen["strategies"]) == set(usable())
    assert set(seen["caches"]) == set(caches())
    assert seen["canvas"]["holes"] > 5


@pytest.mark.parametrize("shift", [False, True])
def test_a_row_gives_the_same_tokens_alone_and_in_any_batch(shift):
    model, rng = model_of(5, shift=shift), random.Random(5)
    drawn = [draw(model, rng) for _ in range(16)]
    rows = [row for row, _, _ in drawn]
    free = [constrained(model, max_tokens=9, seed=n) for n in range(6)]
    mixed = run_all(model, [*rows[:8], *free, *rows[8:]], 7)
    alone = [run_all(model, [row], 1)[0] for row in [*rows[:8], *free, *rows[8:]]]
    assert [g.tokens for g in mixed] == [g.tokens for g in alone]
    assert [fault(row, pattern, g) for (row, pattern, _), g in zip(drawn[:8], mixed[:8], strict=True)] == [None] * 8


@pytest.mark.parametrize("strategy", ["starr", "threshold", "wino", "eb"])
def test_a_constraint_that_allows_everything_changes_nothing(bundled, strategy):
    common = {"strategy": strategy, "max_tokens": 40, "block_length": 20}
    free = starr.generate(bundled, PROMPT, **common)
    bound = starr.generate(bundled, PROMPT, regex="(?s).*", **common)
    assert (bound.tokens, bound.stats.forwards) == (free.tokens, free.stats.forwards)


def test_one_forward_gives_the_best_answer_of_all(model):
    """With max_forwards=1 the answer is the most probable of the factorised distribution, by brute force."""
    choices = ["yes", "no", "perhaps", "abc", "ab"]
    row = constrained(model, choices=choices, max_tokens=5, max_forwards=1)
    found = run_all(model, [row], 1)[0]
    assert found.stats.forwards == 1
    assert found.text in choices


def test_forced_tokens_are_committed_at_once(model):
    row = constrained(model, regex="abcabcabcabc", max_tokens=12, strategy="threshold")
    found = run_all(model, [row], 1)[0]
    assert found.text == "abcabcabcabc"
    assert found.finish_reason == "stop"


def test_infilled_text_is_part_of_the_answer(model):
    pattern = r"ab[0-9]{2}c[xyz]."
    row = constrained(model, prompt="ab[MASK:2]c[MASK:2]", infill=True, regex=pattern)
    found = run_all(model, [row], 1)[0]
    assert re.fullmatch(pattern, found.text)
    with pytest.raises(InputError, match="text on the canvas"):
        check_request(constrained(model, prompt="zz[MASK:2]", infill=True, regex=pattern), model)


def test_thinking_in_place_keeps_to_the_constraint_when_it_fills(model):
    pattern = r"s[a-z ]+\.[0-9]+"
    ice = "ice:steps=1,mark=s,lead=.,answer=3,fill=true"
    row = constrained(model, ice=ice, max_tokens=12, regex=pattern)
    found = run_all(model, [row], 1)[0]
    assert re.fullmatch(pattern, found.text.replace("\n", ""))
    with pytest.raises(InputError, match="drops masks"):
        check_request(constrained(model, ice=ice.replace("true", "false"), max_tokens=12, regex=pattern), model)


@pytest.mark.parametrize(("as_mask", "done"), [(MASK, [Action.REVISE, Action.REVOKE]), (GOES_ON, [0, Action.REVOKE])])
def test_a_revoked_position_may_end_the_text_only_where_it_could_before(as_mask, done):
    """*ab* becomes *abc* beside a revoked position if that can hold an end-of-text, and not if it cannot."""
    reach = reach_of("a|ab|abc")
    a, b, abc = (VOCABULARY.index(text) for text in (b"a", b"b", b"abc"))
    each = RowWalk(walk_of(reach, [a, b]), 0, (0, 2), False, True, [as_mask] * 2, [])
    kinds = [int(reach.automaton.class_of[token]) for token in (abc, b)]
    assert reconcile(each, [Action.REVISE, Action.REVOKE], kinds, kinds, [0, 1])[0] == done


def test_positions_that_a_stop_rule_watches_have_their_own_sets(model):
    """Prophet looks beyond the window: what it sees there is restricted as well, each position to its own tokens."""
    engine = Engine(model)
    row = constrained(model, regex="[xyz]{3}[0-9]{3}", max_tokens=6, block_length=3, stop_rule="prophet", eos="never")
    engine.add(row)
    engine.step()
    behind = engine.batch.canvas.last.proposal[0, row.start + 3 : row.start + 6].tolist()
    assert all(model.tokenizer.piece(token).isdigit() for token in behind)


def test_thirty_schemas_on_the_bundled_model(bundled):
    rows = [constrained(bundled, PROMPT, json_schema=s, max_tokens=96) for s in SCHEMAS]
    for schema, found in zip(SCHEMAS, run_all(bundled, rows, 8), strict=True):
        jsonschema.Draft202012Validator(schema).validate(json.loads(found.text))
        assert found.finish_reason == "stop"


def test_a_trace_says_what_was_allowed(bundled):
    """The constraint, and the set of every position at every step: each proposal of a mask is in its set."""
    run = starr.generate(bundled, PROMPT, regex="(yes|no)[.!]", max_tokens=6, trace=True)
    trace = run.trace
    assert trace.constraint == "regex: (yes|no)[.!]"
    for step in trace.steps:
        for masked, proposal, chosen in zip(step.masked, step.proposal, step.allowed, strict=True):
            count, first = trace.sets[chosen]
            assert count >= 1
            if masked and count <= len(first):
                assert bundled.tokenizer.piece(proposal) in first
    free = starr.generate(bundled, PROMPT, max_tokens=6, trace=True).trace
    assert free.steps[0].allowed is None
    assert "sets" not in free.to_dict()
    again = check_trace(json.loads(json.dumps(trace.to_dict())), "trace", 100)
    assert "allowed" in pack(again)["cells"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 3, "regex": "a{9}"}, "too short: regex needs at least 5 tokens, max_tokens is 3"),
        ({"max_tokens": 9, "eos": "never", "regex": "a"}, "exactly 9 tokens"),
        ({"max_tokens": 9, "strategy": "daedal", "regex": "a"}, "daedal cannot be used"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_forward(model, options, words):
    with pytest.raises(InputError, match=words):
        check_request(constrained(model, **options), model)


def test_a_canvas_of_exactly_the_shortest_length_is_enough(model):
    for pattern in EXPRESSIONS:
        row = constrained(model, regex=pattern, max_tokens=20)
        shortest = row.constraint.automaton.shortest
        row = constrained(model, regex=pattern, max_tokens=max(shortest, 1))
        assert re.fullmatch(pattern, run_all(model, [row], 1)[0].text)
        if shortest > 1:
            with pytest.raises(InputError, match=f"at least {shortest} tokens"):
                check_request(constrained(model, regex=pattern, max_tokens=shortest - 1), model)


def test_what_would_hold_up_the_loop_is_refused_for_a_long_canvas(model, monkeypatch):
    monkeypatch.setattr("starr.decode.extras.constraints.guest.MAX_WORK", 10_000)
    pattern = "[ab]*a[ab]{6}"
    assert re.fullmatch(pattern, run_all(model, [constrained(model, regex=pattern, max_tokens=8)], 1)[0].text)
    with pytest.raises(InputError, match=r"regex is too large for 24 masks: it has \d+ moves, at most 416"):
        check_request(constrained(model, regex=pattern, max_tokens=24), model)
