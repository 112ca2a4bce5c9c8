"""A wrapped transformers module gives the tokens that the same weights give when they are loaded natively."""

import dataclasses
import inspect
from functools import partial
from types import SimpleNamespace

import pytest
import torch

import starr
from starr.errors import InputError
from starr.integrations.transformers import generate
from starr.model.text.tokenizer import read_tokenizer
from tests.integrations import modules
from tests.model import encoders
from tests.tiny import form_of

PROMPTS = ["Tom has two", "A red pear.", "x"]
VERIFIES = "verify" in {field.name for field in dataclasses.fields(starr.Options)}


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def pair(request, tmp_path_factory):
    """A wrapped module and the same weights, loaded natively."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "llama":
        module, special, write = modules.llama(), modules.LLADA_SPECIAL, modules.write_as_llada
    else:
        module, special, write = modules.qwen3(), modules.QWEN_SPECIAL, modules.write_as_a2d
    native = starr.load(write(module, folder), dtype="float32", device="cpu")
    return starr.wrap(module, modules.tokenizer_for(special)), native


def both(pair, prompts=PROMPTS, **options):
    wrapped, native = ([g.tokens for g in starr.generate(model, prompts, **options)] for model in pair)
    return wrapped, native


def test_the_wrapped_specification_is_the_native_one(pair):
    wrapped, native = (model.spec for model in pair)
    names = ("mask_id", "eos_ids", "bos_id", "pad_id", "shift", "max_length", "block_length")
    assert [getattr(wrapped, name) for name in names] == [getattr(native, name) for name in names]


@pytest.mark.parametrize("name", [member.name for member in starr.strategies()])
def test_every_strategy_gives_the_native_tokens(pair, name):
    wrapped, native = both(pair, strategy=form_of(name), max_tokens=12, block_length=6, chat=False)
    assert wrapped == native


@pytest.mark.skipif(not VERIFIES, reason="verify is no option of decoding")
@pytest.mark.parametrize("name", ["starr", "threshold:tau=0.3", "klass"])
def test_verify_gives_the_native_tokens(pair, name):
    options = {"strategy": name, "max_tokens": 12, "verify": 0.3, "chat": False}
    wrapped, native = both(pair, **options)
    assert wrapped == native


@pytest.mark.parametrize(
    "options",
    [{"temperature": 0.8, "seed": 5}, {"guidance": 0.7}, {"smoothing": 0.4}, {"regex": "[a-f]{4,10}"}],
    ids=lambda options: next(iter(options)),
)
def test_options_of_decoding_give_the_native_tokens(pair, options):
    wrapped, native = both(pair, strategy="starr", max_tokens=12, chat=False, **options)
    assert wrapped == native


def test_a_row_gives_the_same_tokens_alone_and_in_a_ragged_batch(pair):
    together = starr.generate(pair[0], PROMPTS, max_tokens=10, chat=False)
    alone = [starr.generate(pair[0], prompt, max_tokens=10, chat=False) for prompt in PROMPTS]
    assert [g.tokens for g in together] == [g.tokens for g in alone]


@pytest.mark.parametrize("name", [member.name for member in starr.caches() if member.name != "none"])
def test_caches_are_refused_by_name(pair, name):
    with pytest.raises(InputError, match=name) as found:
        starr.generate(pair[0], "Tom", cache=name, max_tokens=4, chat=False)
    assert found.value.param == "cache"


@pytest.mark.parametrize("block", [4, 8])
def test_blocks_give_the_tokens_of_a_native_block_causal_model(tmp_path, block):
    module = modules.qwen3()
    folder = modules.write_as_a2d(module, tmp_path)
    native = starr.load(folder, dtype="float32", device="cpu", attention=f"blocks:{block}")
    wrapped = starr.wrap(
        module, modules.tokenizer_for(modules.QWEN_SPECIAL), family="a2d_qwen3", attention=f"blocks:{block}"
    )
    ours, theirs = both((wrapped, native), max_tokens=12, strategy="threshold:tau=0.3", chat=False)
    assert ours == theirs


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert", "albert"])
def test_encoders_give_the_native_tokens(tmp_path, kind):
    module = encoders.MAKERS[kind]()
    native = starr.load(encoders.write(module, tmp_path), dtype="float32", device="cpu")
    wrapped = starr.wrap(module, read_tokenizer(tmp_path))
    assert wrapped.spec.extra_queries
    prompts = [list(range(6, 20)), list(range(8, 12))]
    for strategy in ("starr", "wino", "confidence"):
        ours, theirs = both((wrapped, native), prompts, max_tokens=10, strategy=strategy)
        assert ours == theirs


@pytest.mark.parametrize("make", [modules.qwen2, modules.qwen3_moe], ids=["qwen2", "qwen3_moe"])
def test_other_shapes_see_both_ways(make):
    model = starr.wrap(make(), modules.tokenizer_for(modules.QWEN_SPECIAL))
    assert len(starr.generate(model, "Tom", max_tokens=8, strategy="wino", chat=False).tokens) > 0
    tokens = torch.arange(6)[None] + 20
    hidden = torch.ones(1, 6, 6, dtype=torch.bool).tril()
    assert not torch.allclose(model.net(tokens)[:, 0], model.net(tokens, attend=hidden)[:, 0])


def test_qwen2_gives_the_native_tokens(tmp_path):
    module = modules.qwen2()
    native = starr.load(modules.write_as_a2d(module, tmp_path, "A2DQwen2LMHeadModel"), dtype="float32", device="cpu")
    wrapped = starr.wrap(module, modules.tokenizer_for(modules.QWEN_SPECIAL))
    ours, theirs = both((wrapped, native), max_tokens=10, strategy="starr", chat=False)
    assert ours == theirs


class Deaf(torch.nn.Module):
    """A module with the call of LLaDA's own class: full attention, no positions, masks without effect."""

    def __init__(self, module):
        super().__init__()
        self.inner, self.config = module, module.config

    def get_input_embeddings(self):
        return self.inner.get_input_embeddings()

    def get_output_embeddings(self):
        return self.inner.get_output_embeddings()

    def forward(self, input_ids=None, inputs_embeds=None, attention_mask=None, attention_bias=None, use_cache=None):
        rows, length = (input_ids if inputs_embeds is None else inputs_embeds).shape[:2]
        full = torch.zeros(rows, 1, length, length)
        return SimpleNamespace(logits=self.inner(input_ids, inputs_embeds=inputs_embeds, attention_mask=full).logits)


def test_a_module_that_ignores_masks_decodes_rows_of_one_length_together(pair):
    deaf = starr.wrap(Deaf(pair[0].net.module).eval(), pair[0].tokenizer)
    assert not deaf.net.powers.masks
    ours, theirs = both((deaf, pair[1]), max_tokens=10, strategy="starr", chat=False)
    assert ours == theirs
    with pytest.raises(InputError, match="wino") as found:
        starr.generate(deaf, "Tom", strategy="wino", max_tokens=4, chat=False)
    assert found.value.param == "strategy"
    if VERIFIES:
        with pytest.raises(InputError) as found:
            starr.generate(deaf, "Tom", verify=0.3, max_tokens=4, chat=False)
        assert found.value.param == "verify"


class Causal(Deaf):
    """A module that sees only what came before, whatever it is told."""

    def forward(self, input_ids=None, attention_mask=None):
        return self.inner(input_ids)


def test_a_module_that_stays_causal_is_refused(pair):
    with pytest.raises(InputError) as found:
        starr.wrap(Causal(pair[0].net.module).eval(), pair[0].tokenizer)
    assert found.value.param == "model"


def test_what_cannot_be_wrapped_is_refused(pair):
    tokenizer = pair[0].tokenizer
    with pytest.raises(InputError):
        starr.wrap(modules.llama().train(), tokenizer)
    with pytest.raises(InputError):
        starr.wrap(torch.nn.Linear(2, 2), tokenizer)
    flash = modules.llama()
    flash.config._attn_implementation = "flash_attention_2"
    with pytest.raises(InputError):
        starr.wrap(flash, tokenizer)


def test_a_module_without_a_mask_token_needs_one():
    special = {"<|startoftext|>": 256, "<|endoftext|>": 257}
    with pytest.raises(InputError) as found:
        starr.wrap(modules.llama(), modules.tokenizer_for(special))
    assert found.value.param == "mask_id"
    assert starr.wrap(modules.llama(), modules.tokenizer_for(special), mask_id=260).spec.mask_id == 260


def test_a_shifted_module_predicts_from_the_row_before():
    tokenizer = modules.tokenizer_for()
    plain, shifted = starr.wrap(modules.llama(), tokenizer), starr.wrap(modules.llama(), tokenizer, shift=True)
    prompt = plain.tokenizer.encode("Tom has")
    found = starr.generate(shifted, prompt, max_tokens=1, strategy="confidence")
    logits = plain.net(torch.tensor([[*prompt, plain.spec.mask_id]]))[0, -2]
    logits[plain.spec.mask_id] = -torch.inf
    assert found.tokens in ([int(logits.argmax())], [])


def test_a_lora_changes_the_tokens_and_a_zero_lora_does_not(pair):
    peft = pytest.importorskip("peft", reason="peft is not installed")
    module = modules.llama()
    plain = [g.tokens for g in starr.generate(starr.wrap(module, pair[0].tokenizer), PROMPTS, max_tokens=8, chat=False)]
    adapted = peft.get_peft_model(module, peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"])).eval()
    model = starr.wrap(adapted, pair[0].tokenizer)
    assert [g.tokens for g in starr.generate(model, PROMPTS, max_tokens=8, chat=False)] == plain
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.fill_(2.0)
    assert [g.tokens for g in starr.generate(model, PROMPTS, max_tokens=8, chat=False)] != plain


def test_a_compiled_module_gives_the_same_tokens(pair):
    compiled = torch.compile(pair[0].net.module, backend="eager")
    ours, theirs = both((starr.wrap(compiled, pair[0].tokenizer), pair[0]), PROMPTS[:1], max_tokens=8, chat=False)
    assert ours == theirs


def test_an_int8_module_decodes(pair):
    torchao = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    module = modules.llama()
    torchao.quantize_(module, torchao.Int8WeightOnlyConfig())
    model = starr.wrap(module, pair[0].tokenizer)
    for strategy in ("starr", "wino", "threshold"):
        found = starr.generate(model, PROMPTS, max_tokens=8, strategy=strategy, chat=False)
        assert all(model.spec.mask_id not in g.tokens for g in found)
    seen = torch.arange(8)[None] + 20
    near, exact = model.net(seen), pair[0].net(seen)
    if pair[1].spec.family == "llada":
        assert (near - exact).abs().max() < 0.1 * exact.abs().max()
        assert not torch.equal(near, exact)


def test_custom_generate_gives_the_tokens_of_a_wrapped_module(pair):
    module, tokenizer = pair[0].net.module, pair[0].tokenizer
    prompts = [tokenizer.encode(text) for text in PROMPTS]
    longest = max(map(len, prompts))
    ids = torch.tensor([[257] * (longest - len(p)) + p for p in prompts])
    real = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    found = module.generate(
        ids,
        attention_mask=real,
        max_new_tokens=9,
        strategy="threshold:tau=0.3",
        block_length=3,
        custom_generate=partial(generate, tokenizer=tokenizer),
    )
    expected = starr.generate(pair[0], prompts, max_tokens=9, strategy="threshold:tau=0.3", block_length=3)
    assert torch.equal(found[:, :longest], ids)
    assert [row[: len(g.tokens)].tolist() for row, g in zip(found[:, longest:], expected, strict=True)] == [
        g.tokens for g in expected
    ]


def test_custom_generate_takes_every_option_of_decoding():
    names = inspect.signature(generate).parameters
    assert {field.name for field in dataclasses.fields(starr.Options)} <= set(names)
