import json
import re
from dataclasses import replace
from random import Random

import pytest
import torch
from tokenizers import Tokenizer

import starr
from starr.decode.prompts.ice import Ice
from starr.errors import InputError
from starr.model.files import hub
from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer
from training import export
from training import train as trainer
from training.attention import trainable
from training.blocks import BLOCK, mask_blocks, masked_states
from training.checkpoint import FILE, averaged, read
from training.data import Mix, RowSource, batches
from training.noise import Batch, from_the_end, mask_tokens
from training.optimizer import Muon, average, orthogonalise, split_parameters
from training.rows import ANSWER, DRILL_LENGTH, drill
from training.tokenizer import EOS, MASK, render, save, train_tokenizer


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


def test_a_run_can_begin_with_a_models_weights(tmp_path):
    options = trainer.Options(tokenizer=tmp_path, out=tmp_path, weights=hub.BUNDLED_FOLDER, bfloat16=False)
    model = starr.load()
    run = trainer.start(model.spec.shape, options)
    pairs = zip(run.ema.parameters(), model.net.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


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


def test_rows_of_a_block_causal_model_end_behind_their_answer(tokenizer):
    source = RowSource(tokenizer, seed=3, mix=Mix(drills=0, templates=0, holes=0), longer=False)
    for _ in range(50):
        row = source.draw()
        assert len(row.tokens) % 16 == 0
        assert 1 <= sum(row.fill) <= 16


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


def test_render_is_what_the_chat_template_gives(tokenizer):
    from jinja2 import Template

    from training.tokenizer import BOS, TEMPLATE

    messages = [{"role": "user", "content": " Hi there "}]
    rendered = Template(TEMPLATE).render(bos_token=BOS, messages=messages, add_generation_prompt=True)
    assert rendered == render(" Hi there ")
    assert tokenizer.token_to_id(MASK) < tokenizer.get_vocab_size()
