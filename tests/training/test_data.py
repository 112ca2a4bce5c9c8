"""What the model is trained on: rows, masks and batches."""

import re
from dataclasses import replace
from random import Random

import pytest
import torch

from starr.decode.prompts.ice import Ice
from starr.errors import InputError
from training import train as trainer
from training.data import Mix, RowSource, batches
from training.noise import Batch, from_the_end, mask_tokens
from training.rows import ANSWER, DRILL_LENGTH, drill
from training.tokenizer import EOS, MASK, render, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(300)


def test_words_are_single_tokens_and_digits_are_split(tokenizer):
    assert len(tokenizer.encode(" together").ids) == 1
    assert len(tokenizer.encode(" 128").ids) == 3


def test_rows_end_with_end_of_text_and_mask_only_the_canvas(tokenizer):
    source = RowSource(tokenizer, seed=3, mix=Mix(drills=0, templates=0, holes=0))
    eos = tokenizer.token_to_id(EOS)
    for _ in range(50):
        row = source.draw()
        assert len(row.tokens) == len(row.maskable)
        assert len(row.tokens) % 16 == 0
        start = row.maskable.index(True)
        assert all(row.maskable[start:]) or not any(row.digits)
        assert row.tokens[-1] == eos


def test_drills_mask_only_results(tokenizer):
    row = next(RowSource(tokenizer, seed=4, mix=Mix()).streams["drills"])
    assert len(row.tokens) == DRILL_LENGTH
    assert row.least == sum(row.maskable) // 2
    hidden = [token for token, free in zip(row.tokens, row.maskable, strict=True) if free]
    assert set(tokenizer.decode(hidden)) <= set("0123456789 ")


def test_templates_are_those_of_in_place_prompting(tokenizer):
    stream = RowSource(tokenizer, seed=4, mix=Mix()).streams["templates"]
    for _ in range(20):
        row = next(stream)
        start = row.maskable.index(True)
        told = tokenizer.decode([t for t, free in zip(row.tokens[:start], row.maskable, strict=False) if not free])
        fixed = [token for token, free in zip(row.tokens[start:], row.maskable[start:], strict=True) if not free]
        sections = tokenizer.decode(fixed).count("Step") + 1
        found, answer = Ice(steps=sections, answer=ANSWER).layout(encoder(tokenizer), 0, canvas_length(row, tokenizer))
        first = len(row.tokens) - len(found.tokens)
        assert told.endswith("Step 1:")
        assert row.maskable[first:] == found.masked
        assert all(found.tokens[i] == row.tokens[first + i] for i, free in enumerate(found.masked) if not free)
        assert tokenizer.decode(row.tokens[first + answer :]).strip().isdigit()
        assert len(row.tokens) % 16 == 0


def encoder(tokenizer):
    return lambda text: tokenizer.encode(text).ids


def canvas_length(row, tokenizer):
    """What stands behind the prompt."""
    head = encoder(tokenizer)(render("?"))[-4:]
    ends = [i for i in range(len(row.tokens)) if row.tokens[i : i + 4] == head]
    return len(row.tokens) - ends[0] - 4


def test_texts_with_holes_mask_words_and_nothing_ends_them(tokenizer):
    stream = RowSource(tokenizer, seed=4, mix=Mix()).streams["holes"]
    eos = tokenizer.token_to_id(EOS)
    for _ in range(50):
        row = next(stream)
        assert len(row.tokens) == len(row.maskable) == len(row.digits)
        assert len(row.tokens) % 8 == 0
        assert eos not in row.tokens
        assert any(row.maskable)
        assert not row.maskable[0]


def test_a_mix_is_read_from_text():
    assert trainer.mix("long=20,latin=0") == replace(Mix(), long=20.0, latin=0.0)
    with pytest.raises(InputError, match="mix"):
        trainer.mix("tall=2")


def test_drills_are_right():
    rng = Random(0)
    for _ in range(300):
        before, result, _ = drill(rng)
        assert eval(re.search(r"\d+ [-+*/] \d+ =$", before)[0].removesuffix("=")) == int(result)


def test_batches_hold_one_length(tokenizer):
    stream = batches(RowSource(tokenizer, seed=5, mix=Mix()), 1024)
    for _ in range(5):
        batch = next(stream)
        assert batch.tokens.shape == batch.maskable.shape
        assert batch.tokens.numel() <= 1024


def test_masks_are_stratified_and_only_where_allowed():
    allowed = torch.zeros(64, 40, dtype=torch.bool)
    allowed[:, 8:] = True
    none = torch.zeros_like(allowed)
    batch = Batch(torch.ones(64, 40, dtype=torch.long), allowed, none, none, torch.ones(64, dtype=torch.long))
    noised, masked, weight = mask_tokens(batch, 9, torch.Generator().manual_seed(0))
    count = masked.sum(1)
    torch.testing.assert_close(weight, masked / count[:, None])
    assert not (masked & ~allowed).any()
    assert ((noised == 9) == masked).all()
    assert count.min() == 1
    assert count.max() == 32
    assert torch.bincount(count)[1:].max() == 2  # 64 strata over 32 counts


def test_some_rows_lose_their_digits_from_the_right():
    digits = torch.zeros(2000, 40, dtype=torch.bool)
    digits[:, 10:40:3] = True
    ones = torch.ones(2000, dtype=torch.long)
    batch = Batch(torch.ones(2000, 40, dtype=torch.long), torch.ones_like(digits), digits, ~digits, ones)
    _, masked, _ = mask_tokens(batch, 9, torch.Generator().manual_seed(0))
    gone = masked[:, 10:40:3].int()
    some = (gone.sum(1) > 1) & (gone.sum(1) < 9)
    ordered = (gone.diff(dim=1) >= 0).all(1)  # never a mask to the left of a digit that is there
    assert ordered[some].float().mean() > 0.4
    assert not ordered[some].all()


def test_from_the_end_masks_around_the_answers_end_first():
    fill = (torch.arange(20) >= 12).expand(3, 20)
    maskable = (torch.arange(20) >= 4).expand(3, 20)
    batch = Batch(torch.ones(3, 20, dtype=torch.long), maskable, fill & False, fill, torch.ones(3, dtype=torch.long))
    scores = from_the_end(batch, torch.tensor([[0.1], [0.5], [1.0]]))
    assert (scores[:, 4:12].diff(dim=1) < 0).all()
    assert (scores[:, 12:].diff(dim=1) > 0).all()
    assert scores[:, 12:].amax(1).tolist() == pytest.approx([0.1, 0.5, 1.0])


def test_some_rows_lose_their_whole_answer_and_keep_end_of_text():
    fill = (torch.arange(40) >= 20).expand(400, 40)
    maskable = (torch.arange(40) >= 8).expand(400, 40)
    ones = torch.ones(400, dtype=torch.long)
    batch = Batch(torch.ones(400, 40, dtype=torch.long), maskable, fill & False, fill, ones)
    _, masked, _ = mask_tokens(batch, 9, torch.Generator().manual_seed(0))
    assert not masked[:, :8].any()
    whole = masked[:, 8:20].all(1)
    behind = masked[:, 20:].int()
    from_the_left = (behind.diff(dim=1) <= 0).all(1) & (behind.sum(1) < 20)
    assert (whole & from_the_left).float().mean() > 0.05


def test_rows_of_a_block_causal_model_end_behind_their_answer(tokenizer):
    source = RowSource(tokenizer, seed=3, mix=Mix(drills=0, templates=0, holes=0), longer=False)
    for _ in range(50):
        row = source.draw()
        assert len(row.tokens) % 16 == 0
        assert 1 <= sum(row.fill) <= 16


def test_render_is_what_the_chat_template_gives(tokenizer):
    from jinja2 import Template

    from training.tokenizer import BOS, TEMPLATE

    messages = [{"role": "user", "content": " Hi there "}]
    rendered = Template(TEMPLATE).render(bos_token=BOS, messages=messages, add_generation_prompt=True)
    assert rendered == render(" Hi there ")
    assert tokenizer.token_to_id(MASK) < tokenizer.get_vocab_size()
