"""Every block-causal and expert family against transformers' native class with the same weights and a 4-D mask."""

from functools import cache

import pytest
import torch

from starr.errors import InputError, LoadError
from starr.model import device
from starr.model.families import FAMILIES
from starr.model.files.convert import save
from starr.model.load import load, read_folder
from starr.model.network.masks import block_mask
from tests.model import released
from tests.model.released import MAKERS, Released


@cache
def made(name: str) -> Released:
    return MAKERS[name]()


@pytest.fixture(scope="module", params=MAKERS)
def pair(request, tmp_path_factory):
    one = made(request.param)
    return load(one.write(tmp_path_factory.mktemp(request.param) / "model")), one


TOKENS = torch.randint(0, 256, (2, 37), generator=torch.Generator().manual_seed(5))


def native_logits(one: Released, attend: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros(1, 1, *attend.shape[-2:]).masked_fill(~attend[None], -torch.inf)
    with torch.no_grad():
        return one.native(TOKENS, attention_mask=mask, use_cache=False).logits


def own_mask(one: Released) -> torch.Tensor:
    length = TOKENS.shape[1]
    return torch.ones(1, length, length, dtype=torch.bool) if one.block is None else block_mask(length, one.block)


def test_logits_equal_the_native_class(pair):
    model, one = pair
    assert model.spec.block_length == one.block
    expected = native_logits(one, own_mask(one))
    assert expected.std() > 0.1  # weights large enough for the comparison to mean something
    got = model.net.head(model.net(TOKENS, attend=own_mask(one).expand(2, -1, -1)))
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=0)


def test_a_causal_mask_gives_other_logits(pair):
    model, one = pair
    causal = native_logits(one, torch.ones(1, 37, 37, dtype=torch.bool).tril())
    got = model.net.head(model.net(TOKENS, attend=own_mask(one).expand(2, -1, -1)))
    assert (got - causal).abs().max() > 0.1


def test_what_is_saved_loads_the_same(pair, tmp_path):
    model, _ = pair
    save(model.net, model.spec, tmp_path / model.name, tokenizer=released.byte_tokenizer(released.SPECIAL))
    again = load(tmp_path / model.name)
    assert again.spec == model.spec
    assert all(torch.equal(a, b) for a, b in zip(again.net.parameters(), model.net.parameters(), strict=True))


@pytest.mark.parametrize("name", ["sdar_moe", "llada2"])
def test_stacked_experts_load_the_same(name, tmp_path):
    one = load(made(name).write(tmp_path / "one"))
    both = load(MAKERS[name](stacked=True).write(tmp_path / "both"))
    assert any(p.dim() == 3 for p in one.net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(one.net.parameters(), both.net.parameters(), strict=True))


def test_bfloat16_keeps_the_sigmoid_router_in_float32(tmp_path):
    if device.explain_half_trouble("bfloat16"):
        pytest.skip("bfloat16 does not work on this CPU")
    one = made("llada2")
    model = load(one.write(tmp_path / "model"), dtype="bfloat16")
    experts = model.net.layers[1].mlp
    assert (experts.bias.dtype, experts.router.dtype) == (torch.float32, torch.float32)
    assert torch.equal(experts.bias, one.tensors["model.layers.1.mlp.gate.expert_bias"])
    others = {name: p.dtype for name, p in model.net.named_parameters() if name not in model.net.wide}
    assert set(others.values()) == {torch.bfloat16}


@pytest.mark.parametrize("name", MAKERS)
def test_habits_are_known_members(name, tmp_path):
    from starr.decode.caches import cache as make_cache
    from starr.decode.strategies import strategy

    spec, _, family = read_folder(made(name).write(tmp_path / "model"), "model")
    assert FAMILIES[spec.family] is family
    assert strategy(spec.habits.strategy)
    assert make_cache(spec.habits.cache)


def refusal(folder) -> str:
    with pytest.raises(LoadError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_tied_heads_may_be_stored_but_must_be_the_embedding(tmp_path):
    one = released.fast_dllm(tied=True)
    assert load(one.write(tmp_path / "absent")).net.lm_head is None
    one.tensors["lm_head.weight"] = one.tensors["model.embed_tokens.weight"].clone()
    assert load(one.write(tmp_path / "stored")).net.lm_head is None
    one.tensors["lm_head.weight"][3, 1] += 1
    assert "lm_head.weight differs from the embedding" in refusal(one.write(tmp_path / "other"))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sdar", {"architectures": ["DreamModel"], "head_dim": None}, "DreamModel has no q/k norms, but the weights"),
        ("fast_dllm_v2", {"architectures": ["DreamForCausalLM"]}, "has q/k norms, which the weights lack"),
        ("sdar_moe", {"architectures": ["SDARForCausalLM"]}, "SDARForCausalLM has no experts, but the weights have"),
        ("sdar", {"architectures": ["SDARMoeForCausalLM"], **released.EXPERTS, "moe_intermediate_size": 24}, "experts"),
        ("llada2", {"num_experts": 8}, "no place for tensor"),
        ("llada2", {"expert_capacity": 48}, "LLaDA2.2, which is not supported: its router works on whole blocks"),
        ("llada2", {"score_function": "softmax"}, "score_function='softmax' is not supported"),
        ("llada2", {"rotary_dim": 16}, "rotary_dim=16 is not supported, only 8 is"),
        ("llada2", {"norm_head": True}, "norm_head=True"),
        ("llada2", {"topk_group": 5}, "cannot be chosen from 5 of 4 groups"),
        ("llada_moe", {"shared_expert_intermediate_size": 24}, "shared_expert_intermediate_size=24"),
        ("llada_moe", {"moe_layer_freq": [0, 1, 1]}, "moe_layer_freq makes layer 0 dense"),
        ("llada_moe", {"rms_norm_eps": None}, "rms_norm_eps must be a number from 1e-12 to"),
        ("llada_moe", {"moe_router_enable_expert_bias": True}, "lacks tensor model.layers.0.mlp.expert_bias"),
        ("sdar_moe", {"norm_topk_prob": None}, "norm_topk_prob must be true or false"),
        ("sdar_moe", {"mlp_only_layers": [0]}, "mlp_only_layers=[0] is not supported"),
        ("illada", {"rope_theta": None}, "rope_theta must be a number from 1e-12 to"),
        ("illada", {"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-05 is not supported"),
        ("sdar", {"rope_scaling": {"type": "yarn"}}, "factor must be a number from 1e-12 to"),
        ("sdar", {"rope_parameters": {"rope_type": "llama3"}}, "rope_type='llama3' is not supported"),
    ],
)
def test_what_contradicts_the_family_is_refused_in_one_line(tmp_path, name, change, message):
    assert message in refusal(made(name).write(tmp_path / "model", **change))


def test_dllm_hubs_configs_must_say_which_attention(tmp_path):
    one = released.a2d()
    del one.config["block_size"]
    assert "--attention" in refusal(one.write(tmp_path / "model"))
    model = load(tmp_path / "model", attention="full")
    assert (model.spec.block_length, model.spec.habits.cache) == (None, "none")
    assert load(tmp_path / "model", attention="blocks:16").spec.block_length == 16
    assert load(one.write(tmp_path / "Qwen3-0.6B-diffusion-mdlm-v0.1")).spec.block_length is None
    assert load(one.write(tmp_path / "Qwen3-0.6B-diffusion-bd3lm-v0.1")).spec.block_length == 32


@pytest.mark.parametrize("text", ["blocks", "blocks:0", "blocks:x", "half", "full:2"])
def test_a_wrong_attention_is_refused(tmp_path, text):
    with pytest.raises(InputError) as caught:
        load(made("a2d_qwen3").write(tmp_path / "model"), attention=text)
    assert caught.value.param == "attention"


def test_attention_that_is_known_cannot_be_chosen():
    with pytest.raises(InputError) as caught:
        load(attention="full")
    assert caught.value.param == "attention"


def test_a2d_models_do_not_think(tmp_path):
    folder = made("a2d_qwen3").write(tmp_path / "model")
    chat = [{"role": "user", "content": "Hi"}]
    own = "".join(text for text, _ in load(folder).tokenizer.pieces(chat))
    assert own.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    (folder / "chat_template.jinja").write_text("{{ 'thinks' if enable_thinking is not false else 'answers' }}")
    assert load(folder).tokenizer.pieces(chat) == [("answers", False)]


def test_the_tokenizers_mask_is_used_where_the_config_has_none(tmp_path):
    one = made("sdar")
    folder = one.write(tmp_path / "model", mask_token_id=None)
    (folder / "tokenizer_config.json").write_text('{"mask_token": "<|mask|>"}')
    assert load(folder).spec.mask_id == released.MASK["<|mask|>"]


@pytest.mark.parametrize("tied", [False, True])
def test_the_weights_say_whether_the_head_is_tied_where_the_config_does_not(tmp_path, tied):
    one = released.fast_dllm(tied=tied)
    model = load(one.write(tmp_path / "model", tie_word_embeddings=None))
    assert (model.net.lm_head is None) == tied


def test_a_model_of_another_name_loads_as_a_family(tmp_path):
    one = released.fast_dllm(tied=True)
    one.config["mask_token_id"] = None
    folder = one.write(tmp_path / "model", architectures=["Qwen2ForCausalLM"], model_type="qwen2")
    (folder / "tokenizer_config.json").write_text('{"mask_token": "<|mask|>"}')
    assert "--family dream" in refusal(folder)
    model = load(folder, family="dream", dtype="float32")
    assert (model.spec.shift, model.spec.block_length) == (True, None)
    assert model.spec.mask_id == released.MASK["<|mask|>"]
    got = model.net.head(model.net(TOKENS))
    every = torch.ones(1, TOKENS.shape[1], TOKENS.shape[1], dtype=torch.bool)
    torch.testing.assert_close(got, native_logits(one, every), atol=1e-4, rtol=0)
    with pytest.raises(InputError) as caught:
        load(folder, family="dreams")
    assert caught.value.param == "family"


def test_queries_that_would_be_scaled_are_out_of_reach(tmp_path):
    model = load(made("nemotron").write(tmp_path / "model"))
    assert model.spec.max_length == released.YARN["original_max_position_embeddings"]


def test_a_longer_block_in_the_name_wins_over_the_default_in_the_config(tmp_path):
    with pytest.warns(UserWarning, match="blocks of 16 by its name, config.json says 4"):
        spec = load(made("sdar").write(tmp_path / "SDAR-4B-Chat-b16")).spec
    assert spec.block_length == 16


def test_llada2s_template_must_end_with_the_reply_tag(tmp_path):
    folder = made("llada2").write(tmp_path / "model")
    good = "{% for m in messages %}<role>HUMAN</role>{{ m.content }}<|role_end|>{% endfor %}<role>ASSISTANT</role>"
    (folder / "chat_template.jinja").write_text(good)
    assert load(folder).tokenizer.has_chat
    (folder / "chat_template.jinja").write_text(good.replace("<role>ASSISTANT</role>", ""))
    assert "must end with <role>ASSISTANT</role>" in refusal(folder)
