"""The engine's promises: rows are independent, nothing runs for ever, no mask is returned, the prompt stays."""

from __future__ import annotations

import random

import pytest
import torch

import starr
from starr.api import Options, build_request, run_all, run_stream
from starr.decode.engine import Engine
from starr.decode.view import Action
from starr.errors import InputError, LengthError
from starr.evals.tasks import word_problems
from tests.tiny import EOS, MASK, form_of, tiny_model

NAMES = [entry.name for entry in starr.strategies()]
ODD_OPTIONS = {
    "threshold": ["threshold:tau=0.3", "threshold:tau=2"],
    "starr": ["starr:responsive=false", "starr:spatial=false"],
    "adablock": ["adablock", "adablock:delimiter_tau=0,share=1,delimiters=10/20/30/40/50"],
    "daedal": ["daedal:most=60", "daedal:most=48,tail=0,expand_below=0.5,block=6"],  # else all grow to the context
    "edit": ["edit", "edit:preset=speed"],
    "hierarchy": ["hierarchy", "hierarchy:revoke=true,revoke_below=0.9"],
    "remdm": [f"remdm:variant={name}" for name in ("cap", "rescale", "conf", "loop")],
}


def random_form(rnd: random.Random, name: str) -> str:
    """A strategy with some of its options at random within their bounds; asked again where two do not go together."""
    entry = next(entry for entry in starr.strategies() if entry.name == name)
    values = {}
    for option in entry.options:
        if option.type != "str" and rnd.random() < 0.4:
            low, high = option.low or 0, min(9 if option.high is None else option.high, 9)
            drawn = {"bool": rnd.choice(["true", "false"]), "float": round(rnd.uniform(low, high), 3)}
            values[option.name] = drawn.get(option.type, rnd.randint(int(low), int(high)))
        elif option.choices and rnd.random() < 0.4:
            values[option.name] = rnd.choice(option.choices)
    if name == "daedal":
        values["most"] = 60  # else all grow to the context
    if name == "calibrated":
        return f"{form_of(name)},floor={round(rnd.random(), 3)}"
    if name == "learn2pd":
        return f"{form_of(name)},tau={round(rnd.random(), 3)},cut={rnd.choice(['true', 'false'])}"
    form = f"{name}:" + ",".join(f"{key}={value}" for key, value in values.items())
    try:
        starr.strategy(form)
    except InputError:
        return random_form(rnd, name)
    return form


def random_request(model, rnd: random.Random, name: str, **more):
    prompt = "".join(rnd.choice("abcdefgh ") for _ in range(rnd.randint(0, 30))) + "z"
    options = {
        "strategy": random_form(rnd, name)
        if rnd.random() < 0.5
        else rnd.choice(ODD_OPTIONS.get(name, [form_of(name)])),
        "max_tokens": rnd.randint(1, 40),
        "block_length": rnd.choice([None, None, 1, 7, 16]),
        "temperature": rnd.choice([0.0, 0.0, 0.7]),
        "top_p": rnd.choice([1.0, 0.9]),
        "top_k": rnd.choice([0, 5]),
        "seed": rnd.randint(0, 10**6),
        "max_forwards": rnd.choice([None, None, None, 3]),
        "enforce": rnd.choice(["safe", "safe", "bounded", "strict", "literal"]),
        "max_revocations": rnd.choice([0, 1, 2, 2]),
        "eos": rnd.choice(["normal", "normal", "never", "last"]),
        "smoothing": 0.0 if name == "wino" else rnd.choice([0.0, 0.0, 0.3]),
        "guidance": rnd.choice([0.0, 0.0, 0.0, 1.5]),
    }
    return build_request(model, prompt, Options(**options | more))


def check(request, result) -> None:
    assert MASK not in result.tokens
    assert result.finish_reason in ("stop", "length")
    calls = 2 if request.options.guidance else 1
    if not request.strategy.needs().get("growth"):
        assert result.stats.forwards <= calls * request.step_limit
        assert len(result.tokens) <= request.length
    assert EOS not in result.tokens


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_thousand_random_runs(shift):
    """All strategies and options side by side in batches of 16: 100 runs on each of five models of either family."""
    for seed in range(5):
        model, rnd = tiny_model(shift=shift, seed=seed), random.Random(f"{shift} {seed}")
        run_checked(model, [random_request(model, rnd, NAMES[i % len(NAMES)]) for i in range(100)])


def run_checked(model, requests) -> None:
    """Decode them together; every prompt stays what it was after every step."""
    engine = Engine(model, max_rows=16)
    running = {engine.add(request): request for request in requests}
    while engine.busy:
        for event in engine.step():
            if event.generation is not None:
                check(running.pop(event.id), event.generation)
        for row, tokens in zip(engine.batch.rows, engine.batch.canvas.tokens.tolist(), strict=False):
            assert tokens[: row.request.start] == row.request.tokens[: row.request.start]
    assert not running


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_alone_equals_batched_equals_joined_late(name, shift):
    model, rnd = tiny_model(shift=shift), random.Random(name)
    requests = [random_request(model, rnd, name, enforce="safe") for _ in range(3)]
    others = [random_request(model, rnd, rnd.choice(NAMES)) for _ in range(5)]
    alone = [run_all(model, [r], 1)[0].tokens for r in requests]
    together = [g.tokens for g in run_all(model, [*others, *requests], 8)[len(others) :]]
    assert alone == together
    engine, late = Engine(model, max_rows=8), {}
    for other in others:
        engine.add(other)
    engine.step()
    order = [engine.add(r) for r in requests]
    while engine.busy:
        late |= {e.id: e.generation.tokens for e in engine.step() if e.done}
    assert [late[i] for i in order] == alone


def test_alone_equals_batched_equals_joined_late_on_the_bundled_model():
    """One row alone, among eight ragged others, and joined to them late: token for token."""
    model, prompts = starr.load(), [problem.prompt for problem in word_problems.load()[:9]]
    names = ("starr", "threshold")
    options = [Options(strategy=names[i % 2], max_tokens=12 + 3 * i, block_length=(None, 8)[i % 2]) for i in range(9)]
    one, *others = [build_request(model, p, o) for p, o in zip(prompts, options, strict=True)]
    for name in names:
        row = one.change(strategy=starr.strategy(name))
        alone = run_all(model, [row], 1)[0]
        assert run_all(model, [*others, row], 9)[-1].tokens == alone.tokens
        engine = Engine(model, max_rows=9)
        for other in others:
            engine.add(other)
        for _ in range(3):
            engine.step()
        late, result = engine.add(row), None
        while result is None:
            result = next((e.generation for e in engine.step() if e.id == late and e.done), None)
        assert (result.tokens, result.stats.forwards) == (alone.tokens, alone.stats.forwards)


def test_prompt_and_settled_text_never_change():
    model = tiny_model()
    for name in NAMES:
        for block in (None, 5):
            request = build_request(
                model, "some prompt", Options(strategy=form_of(name), max_tokens=24, block_length=block), stream=True
            )
            shown = ""
            for event in run_stream(model, request):
                assert event.text.startswith(shown)
                shown = event.text
            assert event.done
            assert event.generation.text == shown == run_all(model, [request], 1)[0].text


def test_dream_shift_reads_the_row_before():
    """A shifted model whose row i - 1 predicts position i gives what an unshifted forward gives one row earlier."""
    model = tiny_model(shift=True)
    request = build_request(model, "abc", Options(strategy="threshold:tau=0", max_tokens=6))
    with torch.inference_mode():
        logits = model.net.head(model.net(torch.tensor([request.tokens])))[0]
    logits = logits.clone()
    logits[:, [MASK, EOS]] = -torch.inf
    expected = logits.argmax(-1)[request.start - 1 : request.start + 5].tolist()
    unshifted = logits.argmax(-1)[request.start : request.start + 6].tolist()
    result = starr.generate(model, "abc", strategy="threshold:tau=0", max_tokens=6, eos="never", trace=True)
    assert result.trace.steps[0].proposal == expected
    assert expected != unshifted


@pytest.mark.parametrize("name", ["confidence", "margin", "entropy", "eb", "eb:order=confidence", "credit", "tacg"])
def test_end_of_text_comes_last_if_asked(name):
    """Whatever a strategy goes by, no end of text is committed while another token waits."""
    model, ends = tiny_model(), 0
    for seed in range(12):
        options = {"max_tokens": 16, "temperature": 1.5, "seed": seed, "eos": "last", "trace": True}
        for step in starr.generate(model, f"prompt {seed}", strategy=form_of(name), **options).trace.steps:
            open_ = [(p, a) for m, p, a in zip(step.masked, step.proposal, step.action, strict=True) if m]
            ends += sum(token == EOS for token, _ in open_)
            if (EOS, Action.COMMIT) in open_:
                assert all(action == Action.COMMIT for token, action in open_ if token != EOS)
    assert ends, "the test needs proposals of the end of text"


def test_trace_arrays_replay_to_the_result():
    model = tiny_model()
    for name in ("starr", "saber", "wino", "threshold", "edit"):
        result = starr.generate(model, "replay", strategy=form_of(name), max_tokens=20, trace=True, eos="never")
        canvas = [MASK] * 20
        for record in result.trace.steps:
            lo, hi = record.window
            assert canvas[lo:hi] == record.tokens
            assert [t == MASK for t in record.tokens] == record.masked
            for i, action in enumerate(record.action):
                if action in (Action.COMMIT, Action.REVISE):
                    canvas[lo + i] = record.proposal[i]
                elif action == Action.REVOKE:
                    canvas[lo + i] = MASK
            commits, revokes = record.action.count(Action.COMMIT), record.action.count(Action.REVOKE)
            assert not any(record.masked) or commits > revokes
        assert canvas == result.trace.tokens == result.tokens


def test_max_forwards_flushes_and_limits():
    model = tiny_model()
    for forwards in (1, 2, 5):
        result = starr.generate(
            model, "x", strategy="confidence", max_tokens=30, block_length=10, max_forwards=forwards, eos="never"
        )
        assert result.stats.forwards == forwards
        assert len(result.tokens) == 30


def test_end_of_text_ends_the_row_and_drops_the_rest():
    """With every token end-of-text, the first commit at the canvas start ends the run, masks behind it unseen."""
    model = tiny_model()
    model.net.lm_head.weight.zero_()
    model.net.lm_head.weight[EOS] = model.net.norm.weight  # any other logit is 0; ties in confidence go left
    results = [starr.generate(model, p, strategy="confidence", max_tokens=16) for p in ("a", "bb", "ccc", "dddd")]
    ended = [r for r in results if r.finish_reason == "stop"]
    assert ended
    for result in ended:
        assert result.text == ""
        assert result.stats.forwards < 16


def test_cancel_leaves_others_untouched():
    model = tiny_model()
    requests = [build_request(model, p, Options(strategy="starr", max_tokens=20)) for p in ("one", "two two", "three")]
    expected = [run_all(model, [r], 1)[0].tokens for r in requests]
    engine = Engine(model)
    ids = [engine.add(r) for r in requests]
    engine.step()
    engine.cancel(ids[1])
    results = {}
    while engine.busy:
        results |= {e.id: e.generation.tokens for e in engine.step() if e.done}
    assert results == {ids[0]: expected[0], ids[2]: expected[2]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens must be a whole number within [1, ∞), got 0"),
        ({"max_tokens": 2.5}, "got 2.5"),
        ({"block_length": -1}, "block_length must be a whole number within [0"),
        ({"temperature": -1}, "temperature must be within"),
        ({"temperature": float("nan")}, "temperature must be within"),
        ({"top_p": 0}, "top_p must be within (0"),
        ({"strategy": "star"}, "Did you mean 'starr'?"),
        ({"strategy": "starr:tempral_window=3"}, "Did you mean 'temporal_window'?"),
        ({"cache": "non"}, "Did you mean 'none'?"),
        ({"enforce": "loose"}, "enforce must be one of safe, bounded, strict, literal"),
        ({"max_forwards": 0}, "max_forwards must be a whole number within"),
        ({"seed": -1}, "seed must be a whole number within [0, 9223372036854775807]"),
        ({"max_token": 5}, "Did you mean 'max_tokens'?"),
    ],
)
def test_bad_options_are_one_line(options, words):
    with pytest.raises(InputError) as caught:
        starr.generate(tiny_model(), "prompt", **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_prompts_are_one_line():
    model = tiny_model(length=64)
    with pytest.raises(InputError, match="must not be empty"):
        starr.generate(model, "  ")
    with pytest.raises(LengthError, match=r"61 \+ 20 = 81 positions, the model has 64"):
        starr.generate(model, "x" * 60, max_tokens=20)
    with pytest.raises(LengthError, match="positions, the model has 64"):
        starr.generate(model, "x", max_tokens=10**9)
    with pytest.raises(InputError, match=r"Token ids must be within \[0, \d+\], got -1"):
        starr.generate(model, [1, -1])
