"""A training run: optimiser, rate, average, checkpoints."""

import json
from dataclasses import replace

import pytest
import torch

import starr
from starr.model.files import hub
from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer
from training import train as trainer
from training.attention import trainable
from training.checkpoint import FILE, averaged, read
from training.optimizer import Muon, average, orthogonalise, split_parameters
from training.tokenizer import save, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(300)


def test_a_run_can_begin_with_a_models_weights(tmp_path):
    options = trainer.Options(tokenizer=tmp_path, out=tmp_path, weights=hub.BUNDLED_FOLDER, bfloat16=False)
    model = starr.load()
    run = trainer.start(model.spec.shape, options)
    pairs = zip(run.ema.parameters(), model.net.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


def test_orthogonalise_gives_singular_values_near_one():
    values = torch.linalg.svdvals(orthogonalise(torch.randn(2, 24, 40), torch.float32))
    assert values.min() > 0.5
    assert values.max() < 1.5


def test_muon_takes_the_layers_matrices_and_learns():
    torch.manual_seed(0)
    model = trainable(Shape(32, 16, 1, 2, 2, 24))
    matrices, rest = split_parameters(model)
    assert len(matrices) == 7
    assert len(matrices) + len(rest) == len(list(model.parameters()))
    tokens = torch.randint(0, 32, (8, 6))
    muon, adam = Muon(matrices, 0.02, torch.float32), torch.optim.AdamW(rest, lr=0.02)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(model.head(model(tokens)).flatten(0, 1), tokens.flatten())
        loss.backward()
        for optimizer in (muon, adam):
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_plain_attention_computes_the_models_function():
    torch.manual_seed(0)
    plain = trainable(Shape(32, 16, 2, 2, 2, 24))
    fused = Transformer(plain.shape)
    fused.load_state_dict(plain.state_dict())
    tokens = torch.randint(0, 32, (3, 7))
    assert torch.allclose(plain(tokens), fused(tokens), atol=1e-5)


def test_the_average_follows_the_weights():
    model, ema = trainable(Shape(32, 16, 1, 2, 2, 24)), trainable(Shape(32, 16, 1, 2, 2, 24))
    for step in range(200):
        average(ema, model, step, decay=0.9)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(ema.parameters(), model.parameters(), strict=True))


def test_the_rate_warms_up_and_ends_at_zero(tmp_path):
    options = trainer.Options(tokenizer=tmp_path, out=tmp_path, minutes=10.0)
    run = trainer.Run(None, None, [])
    assert trainer.rate(run, options) == pytest.approx(1 / options.warmup_steps)
    run.step = 10**6
    assert trainer.rate(run, options) == 1.0
    run.seconds = 600.0 * (1 - options.decay_share / 2)
    assert trainer.rate(run, options) == pytest.approx(0.5)
    run.seconds = 600.0
    assert trainer.rate(run, options) == 0.0


def test_a_run_saves_logs_and_resumes(tmp_path, tokenizer, monkeypatch):
    save(tokenizer, tmp_path / "tokenizer")
    small = Shape(tokenizer.get_vocab_size(), 16, 1, 2, 2, 24)
    monkeypatch.setattr(trainer, "bundled_shape", lambda *_: small)
    options = trainer.Options(
        tokenizer=tmp_path / "tokenizer",
        out=tmp_path / "run",
        minutes=0.05,
        tokens_per_step=512,
        compile=False,
        bfloat16=False,
        check_count=1,
    )
    trainer.train(options)
    before = read(tmp_path / "run" / FILE)[1]
    trainer.train(replace(options, minutes=0.1, resume=True))
    after = read(tmp_path / "run" / FILE)[1]
    assert json.loads(after["counts"])["step"] > json.loads(before["counts"])["step"] > 0
    assert json.loads(after["counts"])["seconds"] >= 6.0
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["done"] is True
    assert set(lines[-1]["scores"]) == {"word-problems", "list-functions", "lines", "grids"}


def test_a_restored_run_goes_on_as_if_it_had_not_stopped(tmp_path):
    shape = Shape(32, 16, 1, 2, 2, 24)
    options = trainer.Options(tokenizer=tmp_path, out=tmp_path, bfloat16=False)
    first = trainer.start(shape, options)
    tokens = torch.randint(0, 32, (4, 6), generator=torch.Generator().manual_seed(0))

    def go_on(run):
        for _ in range(3):
            logits = run.model.head(run.model(tokens))
            trainer.update(run, torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()), options)
            run.step += 1

    go_on(first)
    first.save(tmp_path / FILE)
    second = trainer.start(shape, replace(options, seed=1, resume=True))
    go_on(first)
    go_on(second)
    assert second.step == first.step == 6
    for part in ("model", "ema"):
        pairs = zip(getattr(first, part).parameters(), getattr(second, part).parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert averaged(tmp_path / FILE).shape == shape
