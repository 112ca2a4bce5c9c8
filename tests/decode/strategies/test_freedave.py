"""FreeDave writes the static schedule's text, token for token, and makes the forwards of its transcription."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.api import build_request, run_all
from starr.decode.confidence import unsaturated
from starr.decode.propose import ProposalRequest, propose
from starr.options import Options
from tests.reference.ref_freedave import freedave, static
from tests.tiny import MASK, tiny_model

MODELS = {
    (shift, sharp): tiny_model(shift=shift, seed=3, sharpness=sharp) for shift in (False, True) for sharp in (2, 9)
}


def predictor(model):
    """Proposal and sureness of every position of one row, from a forward of its own."""

    def predict(tokens):
        with torch.inference_mode():
            states = model.net(torch.tensor([tokens]))[0]
            asked = ProposalRequest(model.spec.mask_id, torch.zeros(len(tokens), dtype=torch.int64))
            found = propose(model.net.head, states, asked, model.spec.shape.vocab_size)
        sure = unsaturated(found.confidence, found.odds).tolist()
        words = found.token.tolist()
        return ([0, *words[:-1]], [0.0, *sure[:-1]]) if model.spec.shift else (words, sure)

    return predict


def row_of(model, strategy, length, block, prompt="abc"):
    """A row that no end-of-text ends, so that the whole canvas can be compared."""
    options = Options(strategy=strategy, max_tokens=length, block_length=block, eos="never", trace=True)
    return build_request(model, prompt, options)


def shares_of(width: int, steps: int | None) -> list[int]:
    count = width if steps is None else min(steps, width)
    return [width // count + (i < width % count) for i in range(count)] + [1] * width


@settings(deadline=None, max_examples=25)
@given(
    shift=st.booleans(),
    sharp=st.sampled_from([2, 9]),
    length=st.integers(1, 12),
    block=st.sampled_from([None, 4]),
    drafts=st.integers(1, 5),
    some=st.booleans(),
    seed=st.integers(0, 50),
)
def test_equals_reference(shift, sharp, length, block, drafts, some, seed):
    model = MODELS[shift, sharp]
    steps = 3 if some and block is None else None
    schedule = f"schedule=llada{'' if steps is None else f',steps={steps}'}"
    prompt = "".join(random.Random(seed).choices("abcdefgh", k=5))
    row = row_of(model, f"freedave:drafts={drafts},{schedule}", length, block, prompt)
    run = run_all(model, [row], 1)[0]
    width = block or length
    blocks = [range(i, min(i + width, len(row.tokens))) for i in range(row.start, len(row.tokens), width)]
    never = predictor(without_end(model))
    x, forwards, rows = freedave(list(row.tokens), never, blocks, MASK, shares_of(width, steps), drafts)
    assert run.tokens == x[row.start :]
    assert (run.stats.forwards, run.stats.positions) == (forwards, rows * len(row.tokens))
    assert x == static(list(row.tokens), never, blocks, MASK, shares_of(width, steps))[0]


def without_end(model):
    """The same model, which never proposes an end of text."""

    def head(states):
        logits = model.net.head(states)
        logits[:, list(model.spec.eos_ids)] = -torch.inf
        return logits

    return replace(model, net=Headed(model.net, head))


class Headed:
    """A network with another head."""

    def __init__(self, net, head):
        self.net, self.head = net, head

    def __call__(self, tokens):
        return self.net(tokens)


@pytest.mark.parametrize("strategy", ["", "steps=6", "schedule=dream,steps=9"])
@pytest.mark.parametrize("options", [{}, {"block_length": 5}, {"eos": "last"}, {"eos": "never"}])
def test_the_text_is_that_of_the_static_schedule(strategy, options):
    """In batches with other drafts and other strategies, ends of text and all."""
    for model in (MODELS[False, 9], MODELS[True, 2]):
        common = {"max_tokens": 14, **options}
        rows = []
        for n, prompt in enumerate(["abc", "hello there", "x"]):
            for name in ("confidence", f"freedave:drafts={n + 2}"):
                form = f"{name}{',' if ':' in name else ':' if strategy else ''}{strategy}"
                rows.append(build_request(model, prompt, Options(strategy=form, **common)))
        found = run_all(model, [*rows, build_request(model, "abc", Options(strategy="threshold", **common))], 7)
        for plain, fast in zip(found[:6:2], found[1:6:2], strict=True):
            assert fast.tokens == plain.tokens
            assert fast.stats.forwards <= plain.stats.forwards


def test_the_bundled_model_saves_forwards_and_pays_in_positions():
    model = starr.load()
    prompt = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"
    plain = starr.generate(model, prompt, strategy="confidence", max_tokens=24)
    fast = starr.generate(model, prompt, strategy="freedave:drafts=3", max_tokens=24)
    assert fast.tokens == plain.tokens
    assert fast.stats.forwards < 0.7 * plain.stats.forwards
    assert fast.stats.positions > plain.stats.positions
