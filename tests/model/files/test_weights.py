import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

from starr.errors import LoadError
from starr.model.load import load
from tests.model.tiny import LLADA_CONFIG, llada_tensors, write_llada

Q = "model.transformer.blocks.1.q_proj.weight"
HEAD = "model.transformer.ff_out.weight"


def refusal(folder) -> str:
    with pytest.raises(LoadError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("shards", [0, 1, 4])
def test_single_and_sharded_files_give_the_same_network(tmp_path, shards):
    tensors = llada_tensors()
    model = load(write_llada(tmp_path, tensors=tensors, shards=shards))
    assert torch.equal(model.net.layers[1].attention.q_proj.weight, tensors[Q])
    assert torch.equal(model.net.lm_head.weight, tensors[HEAD])
    assert sum(p.numel() for p in model.net.parameters()) == sum(t.numel() for t in tensors.values())
    assert not model.net.training
    assert not any(p.requires_grad or p.is_meta for p in model.net.parameters())


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_become_float32_on_cpu_whatever_the_file_holds(tmp_path, stored):
    tensors = {name: tensor.to(stored) for name, tensor in llada_tensors().items()}
    model = load(write_llada(tmp_path, tensors=tensors), device="cpu")
    assert model.dtype == torch.float32
    assert torch.equal(model.net.lm_head.weight, tensors[HEAD].float())


def test_the_network_keeps_no_file_mapped(tmp_path):
    model = load(write_llada(tmp_path))
    before = model.net.lm_head.weight.clone()
    file = tmp_path / "model.safetensors"
    file.write_bytes(bytes(file.stat().st_size))
    assert torch.equal(model.net.lm_head.weight, before)


def test_shards_without_an_index_are_read_too(tmp_path):
    write_llada(tmp_path, shards=2)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert load(tmp_path).spec.shape.layers == 3


def test_folder_without_weights(tmp_path):
    write_llada(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "has no weights. It needs model.safetensors" in refusal(tmp_path)


def test_pickle_checkpoint_is_refused_with_how_to_convert(tmp_path):
    write_llada(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    message = refusal(tmp_path)
    assert "pickle checkpoint (pytorch_model.bin)" in message
    assert "models convert" in message


def test_missing_shard_is_named(tmp_path):
    write_llada(tmp_path, shards=3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    assert "Shard model-00002-of-00003.safetensors is missing" in refusal(tmp_path)


@pytest.mark.parametrize("keep", [0, 5, 300, -4])
def test_truncated_shard_is_named(tmp_path, keep):
    write_llada(tmp_path, shards=3)
    file = tmp_path / "model-00002-of-00003.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    message = refusal(tmp_path)
    assert "model-00002-of-00003.safetensors is truncated or damaged" in message


def test_git_lfs_pointer_says_what_to_do(tmp_path):
    write_llada(tmp_path)
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert "git lfs pull" in refusal(tmp_path)


def test_tensor_of_the_wrong_shape_is_named_with_both_shapes(tmp_path):
    tensors = llada_tensors()
    tensors[Q] = tensors[Q][:, :16].contiguous()
    message = refusal(write_llada(tmp_path, tensors=tensors))
    assert f"Tensor {Q} in model.safetensors has shape (32, 16), not (32, 32)" in message


def test_transposed_square_tensors_pass_but_transposed_others_do_not(tmp_path):
    tensors = llada_tensors()
    name = "model.transformer.blocks.0.ff_out.weight"
    tensors[name] = tensors[name].T.contiguous()
    assert f"Tensor {name} in model.safetensors has shape (48, 32), not (32, 48)" in refusal(
        write_llada(tmp_path, tensors=tensors)
    )


@pytest.mark.parametrize("name", [Q, HEAD])
def test_missing_tensor_is_named(tmp_path, name):
    tensors = llada_tensors()
    del tensors[name]
    assert f"The checkpoint lacks tensor {name}." in refusal(write_llada(tmp_path, tensors=tensors))


def test_many_missing_tensors_are_counted(tmp_path):
    tensors = {name: tensor for name, tensor in llada_tensors().items() if ".blocks.2." not in name}
    assert "blocks.2.attn_norm.weight and 8 more" in refusal(write_llada(tmp_path, tensors=tensors))


def test_tensor_without_a_place_is_named(tmp_path):
    tensors = llada_tensors() | {"model.transformer.blocks.0.extra.weight": torch.ones(8)}
    message = refusal(write_llada(tmp_path, tensors=tensors))
    assert "no place for tensor model.transformer.blocks.0.extra.weight" in message


def test_tensor_in_two_shards_is_refused(tmp_path):
    write_llada(tmp_path, shards=2)
    tensors = llada_tensors()
    (tmp_path / "model.safetensors.index.json").unlink()
    save_file({Q: tensors[Q]}, tmp_path / "extra.safetensors")
    message = refusal(tmp_path)
    assert f"Tensor {Q} is in both extra.safetensors and model-0000" in message


def test_quantised_tensor_is_refused(tmp_path):
    tensors = llada_tensors()
    tensors[Q] = tensors[Q].to(torch.int8)
    assert f"Tensor {Q} in model.safetensors is I8" in refusal(write_llada(tmp_path, tensors=tensors))


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": {"a": "../secret.safetensors"}}', "{}"])
def test_broken_index_is_one_line(tmp_path, text):
    write_llada(tmp_path, shards=2)
    (tmp_path / "model.safetensors.index.json").write_text(text)
    assert "model.safetensors.index.json" in refusal(tmp_path)


MEASURE = """
import sys
from pathlib import Path
from starr.model.files import weights
from starr.model.load import load

weights.MAPPED = 4 << 20

def high_water():
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) * 1024

load(sys.argv[2])                                  # imports and caches are warm
Path("/proc/self/clear_refs").write_text("5")      # forget the peak so far
before = high_water()
model = load(sys.argv[1])
print(high_water() - before, sum(p.nbytes for p in model.net.parameters()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_peak_memory_is_the_model_plus_some_tensors(tmp_path):
    """All tensors are in one file, which is never mapped as a whole."""
    config = LLADA_CONFIG | {"d_model": 512, "mlp_hidden_size": 1536, "n_layers": 6}
    folder = write_llada(tmp_path / "large", config=config, tensors=llada_tensors(config))
    command = [sys.executable, "-c", MEASURE, str(folder), str(write_llada(tmp_path / "small"))]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    peak, size = map(int, output.split())
    slack = 16 * 2**20
    assert size > 4 * slack  # else the bound would allow the whole file
    assert peak < size + slack
