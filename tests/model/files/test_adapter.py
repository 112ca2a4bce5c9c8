"""LoRA adapters merged at load: the sum is the one that peft's definition gives, and whatever is more is refused."""

import json

import pytest
import torch
from safetensors.torch import save_file

from starr.errors import LoadError
from starr.model.load import load
from tests.model import tiny

CONFIG = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "bias": "none", "target_modules": ["q_proj"]}
TARGET = "model.transformer.blocks.1.q_proj"


def write_adapter(folder, base, *, config=None, tensors=None):
    folder.mkdir()
    (folder / "adapter_config.json").write_text(
        json.dumps({**CONFIG, "base_model_name_or_path": str(base), **(config or {})})
    )
    if tensors is None:
        generator = torch.Generator().manual_seed(1)
        tensors = {
            f"base_model.model.{TARGET}.lora_A.weight": torch.randn(2, 32, generator=generator),
            f"base_model.model.{TARGET}.lora_B.weight": torch.randn(32, 2, generator=generator),
        }
    save_file(tensors, folder / "adapter_model.safetensors")
    return tensors


@pytest.fixture
def base(tmp_path):
    return tiny.write_llada(tmp_path / "base")


@pytest.mark.parametrize(("rooted", "scale"), [(False, 3.0), (True, 6 / 2**0.5)])
def test_the_product_is_added_to_its_matrix_alone(tmp_path, base, rooted, scale):
    pair = list(write_adapter(tmp_path / "lora", base, config={"use_rslora": rooted}).values())
    model, plain = load(tmp_path / "lora", dtype="float32"), load(base, dtype="float32")
    assert model.name == "lora"
    for (name, new), old in zip(model.net.named_parameters(), plain.net.parameters(), strict=True):
        change = scale * pair[1] @ pair[0] if name == "layers.1.attention.q_proj.weight" else 0
        torch.testing.assert_close(new, old + change)


@pytest.mark.parametrize(
    "config",
    [
        {"use_dora": True},
        {"modules_to_save": ["lm_head"]},
        {"bias": "all"},
        {"peft_type": "IA3"},
        {"r": 0},
        {"rank_pattern": {"q": 1}},
    ],
)
def test_more_than_a_plain_sum_is_refused(tmp_path, base, config):
    write_adapter(tmp_path / "lora", base, config=config)
    with pytest.raises(LoadError):
        load(tmp_path / "lora")


@pytest.mark.parametrize(
    "tensors",
    [
        {f"{TARGET}.lora_A.weight": torch.zeros(2, 32)},
        {"other.lora_A.weight": torch.zeros(2, 32), "other.lora_B.weight": torch.zeros(32, 2)},
        {f"{TARGET}.lora_A.weight": torch.zeros(2, 31), f"{TARGET}.lora_B.weight": torch.zeros(32, 2)},
        {"wte.weight": torch.zeros(2, 2)},
    ],
)
def test_tensors_that_do_not_fit_are_refused(tmp_path, base, tensors):
    write_adapter(tmp_path / "lora", base, tensors=tensors)
    with pytest.raises(LoadError):
        load(tmp_path / "lora")
