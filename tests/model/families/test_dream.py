import pytest

from starr.errors import LoadError
from starr.model.families.dream import NAMES, read_config, write_config
from starr.model.families.names import list_parts
from starr.model.network.transformer import Transformer
from tests.model.tiny import DREAM_CONFIG, DREAM_SPECIAL

RELEASED = DREAM_CONFIG | {
    "bos_token_id": 151643,
    "eos_token_id": 151643,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "mask_token_id": 151666,
    "max_position_embeddings": 131072,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "pad_token_id": 151643,
    "vocab_size": 152064,
}
RELEASED_TOKENS = {"<|endoftext|>": 151643, "<|im_end|>": 151645, "<|beginoftext|>": 151665, "<|mask|>": 151666}


def test_the_released_config_is_read():
    spec = read_config(RELEASED, RELEASED_TOKENS, "Dream-7B")
    shape = spec.shape
    assert (spec.family, spec.shift, spec.max_length) == ("dream", True, 131072)
    assert (spec.mask_id, spec.eos_ids, spec.bos_id, spec.pad_id) == (151666, (151643, 151645), 151665, 151643)
    assert (shape.vocab_size, shape.width, shape.layers, shape.heads, shape.kv_heads) == (152064, 3584, 28, 28, 4)
    assert (shape.mlp_width, shape.rope_theta, shape.norm_eps, shape.head_width) == (18944, 1e6, 1e-6, 128)
    assert shape.qkv_bias
    assert not shape.tied
    assert len(list_parts(NAMES, shape)) == 339


def test_diffucoder_ends_with_its_own_padding_too():
    spec = read_config(RELEASED, RELEASED_TOKENS | {"<|dlm_pad|>": 151667}, "DiffuCoder")
    assert spec.eos_ids == (151643, 151645, 151667)


@pytest.mark.parametrize("tied", [False, True])
def test_writing_inverts_reading_and_every_parameter_has_a_name(tied):
    spec = read_config(DREAM_CONFIG | {"tie_word_embeddings": tied}, DREAM_SPECIAL, "x")
    assert read_config(write_config(spec), DREAM_SPECIAL, "x") == spec
    names = {part.parameter: part.tensor for part in list_parts(NAMES, spec.shape)}
    assert names.keys() == dict(Transformer(spec.shape).named_parameters()).keys()
    assert len(set(names.values())) == len(names)


def test_a_list_of_ends_takes_the_first():
    assert read_config(DREAM_CONFIG | {"eos_token_id": [266, 268]}, DREAM_SPECIAL, "x").eos_ids[0] == 266


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use_mrope": True}, "use_mrope=True is not supported"),
        ({"use_sliding_window": True}, "use_sliding_window=True"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type='linear'"),
        ({"head_dim": 64}, "head_dim=64 is not supported, only 8 is"),
        ({"hidden_size": None}, "hidden_size must be a whole number"),
        ({"num_key_value_heads": 3}, "3 K/V heads"),
    ],
)
def test_wrong_values_are_one_line(change, message):
    with pytest.raises(LoadError) as caught:
        read_config(DREAM_CONFIG | change, DREAM_SPECIAL, "x")
    assert message in str(caught.value)
