"""Encoders against transformers' own classes with the same weights, and what decoding does with them."""

import pytest
import torch

import starr
from starr.errors import LoadError
from starr.model.files.convert import save
from starr.model.load import load
from starr.model.network.transformer import KVBuffer
from tests.model import encoders
from tests.model.encoders import MAKERS

TOKENS = torch.randint(5, 56, (2, 37), generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module", params=MAKERS)
def pair(request, tmp_path_factory):
    native = MAKERS[request.param]()
    folder = encoders.write(native, tmp_path_factory.mktemp(request.param) / "model")
    return load(folder, dtype="float32"), native


def expected(native) -> torch.Tensor:
    with torch.no_grad():
        return native(TOKENS).logits


def test_logits_equal_the_native_class(pair):
    model, native = pair
    want = expected(native)
    assert want.std() > 0.1
    torch.testing.assert_close(model.net.head(model.net(TOKENS)), want, atol=1e-5, rtol=0)


def test_only_wanted_positions_are_the_same(pair):
    model, native = pair
    wanted = torch.tensor([[3, 30, 11], [36, 0, 7]])
    got = model.net.head(model.net(TOKENS, wanted=wanted))
    torch.testing.assert_close(got, expected(native).take_along_dim(wanted[..., None], 1), atol=1e-5, rtol=0)


def test_rows_of_different_length_are_packed_right(pair):
    model, native = pair
    length = torch.tensor([37, 21])
    got = model.net.head(
        model.net.packed(TOKENS, torch.arange(37) < length[:, None], 58, torch.arange(37).expand(2, -1))
    )
    with torch.no_grad():
        short = native(TOKENS[1:, :21]).logits
    torch.testing.assert_close(got[:1], expected(native)[:1], atol=1e-5, rtol=0)
    torch.testing.assert_close(got[1:, :21], short, atol=1e-5, rtol=0)


def test_a_buffer_that_was_just_filled_gives_the_same(pair):
    model, native = pair
    buffer = KVBuffer.empty(model.net.shape, 2, 38, model.net.embed.weight)
    seen = (torch.arange(38) < 37).expand(2, -1)
    model.net(TOKENS, attend=seen, buffer=buffer)
    query = torch.tensor([[4, 20, 36], [0, 1, 30]])
    got = model.net.head(model.net(TOKENS.gather(1, query), query, seen, buffer))
    torch.testing.assert_close(got, expected(native).take_along_dim(query[..., None], 1), atol=1e-5, rtol=0)


def test_what_is_saved_loads_the_same(pair, tmp_path):
    model, _ = pair
    save(model.net, model.spec, tmp_path / model.name, tokenizer=encoders.tokenizer_of(model.spec.family))
    again = load(tmp_path / model.name, dtype="float32")
    assert again.spec == model.spec
    assert all(torch.equal(a, b) for a, b in zip(again.net.parameters(), model.net.parameters(), strict=True))


def test_old_names_of_norms_load_the_same(tmp_path):
    native = encoders.bert()
    model = load(encoders.write_old(native, tmp_path / "model"), dtype="float32")
    torch.testing.assert_close(model.net.head(model.net(TOKENS)), expected(native), atol=1e-5, rtol=0)


def test_local_layers_see_only_their_neighbourhood(tmp_path):
    native = encoders.modernbert()
    near = load(encoders.write(native, tmp_path / "near"), dtype="float32")
    far = load(encoders.write(native, tmp_path / "far", local_attention=128), dtype="float32")
    assert (near.net(TOKENS) - far.net(TOKENS)).abs().max() > 0.1


@pytest.mark.parametrize("strategy", ["confidence", "starr", "threshold", "wino", "remdm", "klass"])
@pytest.mark.parametrize("cache", ["none", "dual", "dkv"])
def test_strategies_fill_holes_with_every_cache_that_fits(pair, strategy, cache):
    model, _ = pair
    if cache != "none" and strategy == "wino":
        pytest.skip("its shadow block needs whole forwards")
    given = "tom has [MASK:2] red [MASK:3]."
    found = starr.infill(model, [given, "two [MASK:4] pear"], strategy=strategy, cache=cache)
    alone = starr.infill(model, given, strategy=strategy, cache=cache)
    assert found[0].tokens == alone.tokens
    assert model.spec.mask_id not in found[1].tokens


def test_a_prompt_may_fill_the_whole_table_of_positions(pair):
    model, _ = pair
    room = model.spec.max_length
    made = starr.generate(model, [7] * (room - 8), max_tokens=8, strategy="wino", eos="never")
    assert made.stats.tokens == 8


def test_choose_reads_a_hole(pair):
    model, _ = pair
    found = starr.choose(model, "tom has [MASK] red pear.", ["two", "app"])
    assert sum(found.probabilities.values()) == pytest.approx(1)


def test_a_filled_text_stands_between_its_marks(pair):
    model, _ = pair
    made = starr.infill(model, "tom has [MASK:2] red.", trace=True)
    assert model.tokenizer.piece(model.spec.bos_id) in ("[CLS]", "<s>")
    assert model.tokenizer.piece(made.trace.steps[0].tokens[-1]) in ("[SEP]", "</s>")
    assert made.trace.prompt_tokens == 1


def test_an_unknown_activation_is_refused(tmp_path):
    with pytest.raises(LoadError, match="hidden_act"):
        load(encoders.write(encoders.bert(), tmp_path / "model", hidden_act="relu"))


def test_dllms_chat_models_have_their_template(tmp_path):
    native = encoders.modernbert()
    assert not load(encoders.write(native, tmp_path / "ModernBERT-base")).tokenizer.has_chat
    model = load(encoders.write(native, tmp_path / "ModernBERT-base-chat-v0.1"))
    said = [("user", " Hi "), ("assistant", "Ho"), ("user", "He")]
    pieces = model.tokenizer.pieces([{"role": role, "content": content} for role, content in said])
    expected = "[Question]\nHi\n[/Question]\n\n[Answer]\nHo\n[/Answer]\n\n[Question]\nHe\n[/Question]\n\n[Answer]\n"
    assert pieces == [(expected, False)]


def test_control_tokens_are_no_text(tmp_path):
    from tokenizers import AddedToken

    from starr.model.text.tokenizer import Tokenizer

    raw = encoders.byte_level()
    raw.add_tokens([AddedToken("<|expand|>", special=False)])
    read = Tokenizer(raw)
    assert read.decode([*read.encode("ab"), raw.token_to_id("<|expand|>"), *read.encode("c")]) == "abc"


@pytest.mark.parametrize("strategy", ["threshold:tau=0.1", "starr"])
def test_held_tokens_are_verified(pair, strategy):
    model, _ = pair
    given = ["tom has [MASK:6] red [MASK:3].", "two [MASK:4] pear"]
    found = starr.infill(model, given, strategy=strategy, verify=0.3)
    assert found[0].tokens == starr.infill(model, given[0], strategy=strategy, verify=0.3).tokens
    assert model.spec.mask_id not in found[0].tokens + found[1].tokens
