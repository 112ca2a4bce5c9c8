"""Training in Dream's format and in that of block-causal models."""

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer

import starr
from starr.model.files import hub
from starr.model.network.shape import Shape
from training import export
from training import train as trainer
from training.blocks import BLOCK, mask_blocks, masked_states
from training.checkpoint import FILE
from training.data import Mix, RowSource, batches
from training.noise import mask_tokens
from training.tokenizer import MASK, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(300)


def test_shifted_logits_predict_a_mask_from_the_state_before_it(tokenizer, tmp_path):
    shape = replace(Shape(tokenizer.get_vocab_size(), 16, 1, 2, 2, 24), qkv_bias=True)
    options = trainer.Options(tokenizer=tmp_path, out=tmp_path, bfloat16=False, format="dream")
    run = trainer.start(shape, options)
    batch = next(batches(RowSource(tokenizer, 0, Mix()), 512))
    noise = trainer.Noise(tokenizer.token_to_id(MASK), torch.Generator().manual_seed(3), False, True, None)
    loss = trainer.loss_of(run.model, run, batch, noise)
    noised, _, weight = mask_tokens(batch, noise.mask_id, torch.Generator().manual_seed(3))
    logits = run.model.head(run.model(noised)).roll(1, dims=1)
    every = torch.nn.functional.cross_entropy(logits.mT, batch.tokens, reduction="none")
    assert loss.item() == pytest.approx((every * weight).sum(1).mean().item(), rel=1e-5)


def test_a_dream_folder_is_written_and_read(tmp_path, monkeypatch, capsys):
    source = hub.BUNDLED_FOLDER
    options = trainer.Options(tokenizer=source, out=tmp_path, weights=source, bfloat16=False, format="dream")
    shape = replace(starr.load().spec.shape, qkv_bias=True)
    trainer.start(shape, options).save(tmp_path / FILE)
    monkeypatch.setattr("sys.argv", ["export", str(tmp_path / FILE), str(source), str(tmp_path / "dream")])
    export.main()
    model = starr.load(tmp_path / "dream")
    assert model.spec.shift
    assert model.spec.family == "dream"
    assert (model.spec.mask_id, model.spec.bos_id) == (starr.load().spec.mask_id, starr.load().spec.bos_id)
    assert model.tokenizer.chat([{"role": "user", "content": "Hi"}]) == starr.load().tokenizer.chat(
        [{"role": "user", "content": "Hi"}]
    )
    assert starr.generate(model, "Mia has 5 pens.", strategy="threshold", max_tokens=8).stats.forwards >= 1


def test_a_block_causal_folder_is_written_and_read(tmp_path, monkeypatch, capsys):
    source = hub.BUNDLED_FOLDER
    options = trainer.Options(tokenizer=source, out=tmp_path, weights=source, bfloat16=False, format="sdar")
    run = trainer.start(trainer.bundled_shape(Tokenizer.from_file(str(source / "tokenizer.json")), "sdar"), options)
    run.save(tmp_path / FILE)
    monkeypatch.setattr("sys.argv", ["export", str(tmp_path / FILE), str(source), str(tmp_path / "blocks")])
    export.main()
    model = starr.load(tmp_path / "blocks", dtype="float32")
    assert (model.spec.family, model.spec.block_length) == ("sdar", 4)
    assert (model.spec.mask_id, model.spec.eos_ids) == (starr.load().spec.mask_id, starr.load().spec.eos_ids)
    assert starr.generate(model, "Mia has 5 pens.", max_tokens=8).stats.forwards >= 1


def test_norms_of_heads_begin_with_the_size_of_queries_and_keys(tmp_path):
    source, tokens = hub.BUNDLED_FOLDER, torch.randint(10, 90, (4, 24), generator=torch.Generator().manual_seed(0))
    options = trainer.Options(tokenizer=source, out=tmp_path, weights=source, bfloat16=False, format="sdar")
    shape = trainer.bundled_shape(Tokenizer.from_file(str(source / "tokenizer.json")), "sdar")
    plain, normed = starr.load(dtype="float32").net, trainer.start(shape, options).model
    first = [net.layers[0].attention.heads for net in (plain, normed)]
    x = plain.layers[0].input_norm(plain.embed(tokens))
    attention = normed.layers[0].attention
    before, after = first[0](attention.q_proj(x)), first[1](attention.q_proj(x), attention.q_norm)
    assert 0.5 < (after.square().mean() / before.square().mean()).sqrt().item() < 2.0


def test_the_loss_of_blocks_sees_clean_text_before_its_block(tokenizer, tmp_path):
    shape = Shape(tokenizer.get_vocab_size(), 16, 1, 2, 2, 24, qk_norm=True)
    run = trainer.start(shape, trainer.Options(tokenizer=tmp_path, out=tmp_path, bfloat16=False, format="sdar"))
    batch = next(batches(RowSource(tokenizer, 0, Mix()), 512))
    noise = trainer.Noise(tokenizer.token_to_id(MASK), torch.Generator().manual_seed(3), False, False, BLOCK)
    loss = trainer.loss_of(run.model, run, batch, noise)
    noised, masked, weight = mask_blocks(batch, noise.mask_id, BLOCK, torch.Generator().manual_seed(3))
    logits = run.model.head(masked_states(run.model, batch.tokens, noised, masked, BLOCK))
    every = torch.nn.functional.cross_entropy(logits, batch.tokens[masked], reduction="none")
    assert loss.item() == pytest.approx((every * weight[masked]).sum().item() / len(masked), rel=1e-5)


def test_a_block_causal_model_is_trained_without_text_behind_masks(tmp_path):
    options = trainer.Options(tokenizer=tmp_path, out=tmp_path, mix=Mix(holes=5, long=9))
    assert trainer.mixture(options) == options.mix
    assert trainer.mixture(replace(options, format="sdar")) == replace(options.mix, holes=0, templates=0)
