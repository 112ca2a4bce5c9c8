"""Our logits against transformers' Llama and Qwen2 made bidirectional, with the same random weights."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from starr.model.load import load
from starr.model.network.transformer import KVBuffer
from tests.model.tiny import DREAM_CONFIG, LLADA_CONFIG, llada_tensors, write_dream, write_llada

# The table of the released LLaDA checkpoints, written out here a second time on purpose.
LLAMA_OF_LLADA = {
    "attn_norm": "input_layernorm",
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_norm": "post_attention_layernorm",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
}
TOP = {"wte": "model.embed_tokens", "ln_f": "model.norm", "ff_out": "lm_head"}


def llama_name(name: str) -> str:
    parts = name.split(".")
    if parts[2] == "blocks":
        return f"model.layers.{parts[3]}.{LLAMA_OF_LLADA[parts[4]]}.{parts[5]}"
    return f"{TOP[parts[2]]}.{parts[3]}"


def llada_pair(folder):
    c = LLADA_CONFIG
    tensors = llada_tensors()
    oracle = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=c["vocab_size"],
            hidden_size=c["d_model"],
            intermediate_size=c["mlp_hidden_size"],
            num_hidden_layers=c["n_layers"],
            num_attention_heads=c["n_heads"],
            num_key_value_heads=c["n_kv_heads"],
            rms_norm_eps=c["rms_norm_eps"],
            rope_parameters={"rope_type": "default", "rope_theta": c["rope_theta"]},
            max_position_embeddings=c["max_sequence_length"],
            attn_implementation="eager",
        )
    ).eval()
    oracle.load_state_dict({llama_name(name): tensor for name, tensor in tensors.items()}, strict=True)
    return load(write_llada(folder, tensors=tensors, shards=3)), oracle


def dream_pair(folder):
    torch.manual_seed(1)
    c = DREAM_CONFIG
    sizes = {key: c[key] for key in c if key.startswith("num_") or key.endswith("_size")}
    config = Qwen2Config(
        **sizes,
        rms_norm_eps=c["rms_norm_eps"],
        rope_parameters={"rope_type": "default", "rope_theta": c["rope_theta"]},
        max_position_embeddings=c["max_position_embeddings"],
        tie_word_embeddings=False,
        attn_implementation="eager",
    )
    oracle = Qwen2ForCausalLM(config).eval()
    for parameter in oracle.parameters():  # biases start at zero and norms at one: make every tensor matter
        torch.nn.init.normal_(parameter, std=0.2)
    return load(write_dream(folder, oracle.state_dict())), oracle


@pytest.fixture(scope="module", params=[llada_pair, dream_pair], ids=["llada", "dream"])
def pair(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("parity") / "model")


@pytest.fixture
def tokens():
    return torch.randint(0, 256, (3, 17), generator=torch.Generator().manual_seed(5))


def oracle_logits(oracle, tokens):
    everyone = torch.zeros(tokens.shape[0], 1, tokens.shape[1], tokens.shape[1])
    with torch.no_grad():
        return oracle(tokens, attention_mask=everyone, use_cache=False).logits


def test_logits_equal_the_oracle(pair, tokens):
    model, oracle = pair
    expected = oracle_logits(oracle, tokens)
    assert expected.std() > 0.1  # weights large enough for the comparison to mean something
    torch.testing.assert_close(model.net.head(model.net(tokens)), expected, atol=1e-4, rtol=0)


def test_oracle_is_bidirectional(pair, tokens):
    _, oracle = pair
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 256
    assert (oracle_logits(oracle, tokens)[:, 0] - oracle_logits(oracle, changed)[:, 0]).abs().max() > 1e-3


def test_logits_through_queries_with_a_fresh_buffer(pair, tokens):
    model, oracle = pair
    rows, length = tokens.shape
    buffer = KVBuffer.empty(model.spec.shape, rows, length, model.net.embed.weight)
    order = torch.stack([torch.randperm(length, generator=torch.Generator().manual_seed(row)) for row in range(rows)])
    hidden = model.net(tokens.gather(1, order), positions=order, buffer=buffer)
    expected = oracle_logits(oracle, tokens).gather(1, order[..., None].expand(-1, -1, model.spec.shape.vocab_size))
    torch.testing.assert_close(model.net.head(hidden), expected, atol=1e-4, rtol=0)


def test_querying_a_subset_again_changes_nothing(pair, tokens):
    model, _ = pair
    rows, length = tokens.shape
    everything = torch.arange(length).expand(rows, -1)
    buffer = KVBuffer.empty(model.spec.shape, rows, length, model.net.embed.weight)
    whole = model.net(tokens, positions=everything, buffer=buffer)
    keys = buffer.keys.clone()
    subset = torch.tensor([[0, 3, 11], [2, 15, 16], [7, 8, 1]])
    again = model.net(tokens.gather(1, subset), positions=subset, buffer=buffer)
    expected = whole.gather(1, subset[..., None].expand(-1, -1, whole.shape[-1]))
    torch.testing.assert_close(again, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(buffer.keys, keys, atol=1e-5, rtol=0)


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_ragged_rows_equal_each_row_alone(pair, tokens, buffered, left):
    """Padding on either side, with RoPE positions counted from each row's own start."""
    model, oracle = pair
    rows, length = tokens.shape
    sizes = torch.tensor([17, 9, 4])
    slots = torch.arange(length).expand(rows, -1)
    start = (length - sizes if left else torch.zeros_like(sizes))[:, None]
    attend = (slots >= start) & (slots < start + sizes[:, None])
    buffer = KVBuffer.empty(model.spec.shape, rows, length, model.net.embed.weight) if buffered else None
    positions = (slots - start).clamp_min(0)
    hidden = model.net(tokens, positions=positions, attend=attend, buffer=buffer, slots=slots)
    for row in range(rows):
        own = tokens[row : row + 1, attend[row]]
        logits = model.net.head(hidden[row : row + 1, attend[row]])
        torch.testing.assert_close(logits, oracle_logits(oracle, own), atol=1e-4, rtol=0)


def test_attend_may_differ_per_query(pair, tokens):
    model, _ = pair
    length = tokens.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril().expand(tokens.shape[0], -1, -1)
    hidden = model.net(tokens, attend=causal)
    torch.testing.assert_close(hidden[:, :5], model.net(tokens[:, :5], attend=causal[:, :5, :5]), atol=1e-5, rtol=0)
