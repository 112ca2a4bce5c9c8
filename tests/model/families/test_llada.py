import pytest

from starr.errors import LoadError
from starr.model.families.llada import NAMES, read_config, write_config
from starr.model.families.names import list_parts
from starr.model.network.transformer import Transformer
from tests.model.tiny import LLADA_CONFIG, LLADA_SPECIAL, llada_tensors

RELEASED = LLADA_CONFIG | {
    "d_model": 4096,
    "embedding_size": 126464,
    "eos_token_id": 126081,
    "mask_token_id": 126336,
    "max_sequence_length": 4096,
    "mlp_hidden_size": 12288,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "pad_token_id": 126081,
    "vocab_size": 126464,
}
RELEASED_TOKENS = {"<|startoftext|>": 126080, "<|endoftext|>": 126081, "<|mdm_mask|>": 126336, "<|eot_id|>": 126348}


def test_the_released_config_is_read():
    spec = read_config(RELEASED, RELEASED_TOKENS, "LLaDA-8B-Instruct")
    shape = spec.shape
    assert (spec.name, spec.family, spec.shift, spec.max_length) == ("LLaDA-8B-Instruct", "llada", False, 4096)
    assert (spec.mask_id, spec.eos_ids, spec.bos_id, spec.pad_id) == (126336, (126081, 126348), 126080, 126081)
    assert (shape.vocab_size, shape.width, shape.layers, shape.heads, shape.kv_heads) == (126464, 4096, 32, 32, 32)
    assert (shape.mlp_width, shape.rope_theta, shape.norm_eps, shape.head_width) == (12288, 500000.0, 1e-5, 128)
    assert (shape.qkv_bias, shape.tied) == (False, False)
    assert len(list_parts(NAMES, shape)) == 291


def test_a_base_model_has_no_end_of_turn():
    spec = read_config(RELEASED, {"<|startoftext|>": 126080}, "base")
    assert spec.eos_ids == (126081,)


def test_absent_and_null_keys_take_their_meaning():
    config = {key: value for key, value in LLADA_CONFIG.items() if key not in ("embedding_size", "mask_token_id")}
    config |= {"n_kv_heads": None, "mlp_hidden_size": None, "pad_token_id": None}
    spec = read_config(config, LLADA_SPECIAL, "x")
    assert (spec.shape.kv_heads, spec.shape.mlp_width, spec.shape.vocab_size) == (4, 128, 272)
    assert (spec.mask_id, spec.pad_id) == (258, 257)
    assert read_config(config | {"multi_query_attention": True}, LLADA_SPECIAL, "x").shape.kv_heads == 1


@pytest.mark.parametrize("change", [{}, {"include_qkv_bias": True}, {"weight_tying": True}])
def test_writing_inverts_reading(change):
    spec = read_config(LLADA_CONFIG | change, LLADA_SPECIAL, "x")
    assert read_config(write_config(spec), LLADA_SPECIAL, "x") == spec


@pytest.mark.parametrize("change", [{}, {"include_qkv_bias": True}, {"weight_tying": True}])
def test_every_parameter_has_a_name_of_its_own(change):
    shape = read_config(LLADA_CONFIG | change, LLADA_SPECIAL, "x").shape
    names = {part.parameter: part.tensor for part in list_parts(NAMES, shape)}
    assert names.keys() == dict(Transformer(shape).named_parameters()).keys()
    assert len(set(names.values())) == len(names)


def test_names_are_the_released_ones():
    shape = read_config(LLADA_CONFIG, LLADA_SPECIAL, "x").shape
    assert {part.tensor for part in list_parts(NAMES, shape)} == llada_tensors().keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_type": "sequential"}, "block_type='sequential' is not supported, only 'llama' is"),
        ({"attention_layer_norm": True}, "attention_layer_norm=True"),
        ({"alibi": True}, "alibi=True"),
        ({"scale_logits": True}, "scale_logits=True"),
        ({"activation_type": "gelu"}, "activation_type='gelu'"),
        ({"include_bias": True}, "include_bias=True"),
        ({"n_layers": 0}, "n_layers must be a whole number from 1 to 16777216, not 0"),
        ({"n_layers": "three"}, "not 'three'"),
        ({"d_model": None}, "d_model must be a whole number"),
        ({"d_model": 30}, "4 heads and 2 K/V heads do not fit a width of 30"),
        ({"n_kv_heads": 3}, "3 K/V heads"),
        ({"rope_theta": 0}, "rope_theta must be a number from 1e-12 to 1e+12, not 0"),
        ({"rms_norm_eps": True}, "rms_norm_eps"),
        ({"mask_token_id": 272}, "mask_token_id must be a token id below 272, not 272"),
        ({"eos_token_id": -1}, "eos_token_id must be a token id"),
    ],
)
def test_wrong_values_are_one_line(change, message):
    with pytest.raises(LoadError) as caught:
        read_config(LLADA_CONFIG | change, LLADA_SPECIAL, "x")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
