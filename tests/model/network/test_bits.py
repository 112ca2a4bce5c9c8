"""Logits to the last bit: those of the released code, whose layers transformers' Llama and Qwen2 share.

``python -m tests.model.network.test_bits`` writes reference_logits.json anew, from transformers.
"""

import json
import tempfile
from pathlib import Path

import pytest
import torch

from starr.model.network.layers import rope_tables
from starr.model.network.shape import Shape
from tests.model.network.test_parity import dream_pair, llada_pair

GOLDEN = Path(__file__).with_name("reference_logits.json")
LENGTH, SHOWN = 400, 6
PAIRS = {"llada": llada_pair, "dream": dream_pair}
TOKENS = torch.tensor([[(7 * i * i + 3 * i) % 256 for i in range(LENGTH)]])


def native_logits(oracle) -> torch.Tensor:
    oracle.config._attn_implementation = "sdpa"
    with torch.no_grad():
        return oracle(TOKENS, attention_mask=torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool), use_cache=False).logits


@pytest.mark.parametrize("name", PAIRS)
def test_logits_are_the_native_ones_to_the_last_bit_and_the_stored_ones(name, tmp_path):
    model, oracle = PAIRS[name](tmp_path / "model")
    got = model.net.head(model.net(TOKENS))
    assert torch.equal(got, native_logits(oracle))
    stored = torch.tensor(json.loads(GOLDEN.read_text())[name])
    torch.testing.assert_close(got[0, -SHOWN:, :SHOWN], stored, atol=2e-6, rtol=0)


def test_frequencies_are_one_over_the_power():
    """Not theta to the negative power, which differs in the last bit for a good part of them."""
    shape = Shape(8, 256, 1, 2, 2, 8, rope_theta=500000.0)
    cos, _ = rope_tables(torch.tensor([[1]]), shape, torch.float32)
    exponent = torch.arange(0, 128, 2).float() / 128
    assert torch.equal(cos[0, 0, 0, :64], (1.0 / (500000.0**exponent)).cos())
    assert not torch.equal(1.0 / 500000.0**exponent, 500000.0**-exponent)


if __name__ == "__main__":
    found = {}
    for name, pair in PAIRS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = native_logits(pair(Path(folder) / "model")[1])[0, -SHOWN:, :SHOWN].tolist()
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
