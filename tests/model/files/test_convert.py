import json
import subprocess
import sys

import pytest
import torch
from safetensors import safe_open

from starr.errors import InputError, WorkError
from starr.model.families import dream, llada
from starr.model.files.convert import save, split_shards
from starr.model.files.output import write_whole
from starr.model.load import load
from starr.model.network.transformer import Transformer
from tests.model.tiny import (
    DREAM_CONFIG,
    DREAM_SPECIAL,
    LLADA_CONFIG,
    LLADA_SPECIAL,
    byte_tokenizer,
    llada_tensors,
    write_dream_tokenizer,
)

SPEC = llada.read_config(LLADA_CONFIG, LLADA_SPECIAL, "tiny")


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Transformer(SPEC.shape)


@pytest.mark.parametrize("limit", [10**9, 20_000])
@pytest.mark.parametrize("change", [{}, {"weight_tying": True}, {"include_qkv_bias": True}])
def test_a_llada_folder_comes_back_as_it_was(tmp_path, limit, change):
    spec = llada.read_config(LLADA_CONFIG | change, LLADA_SPECIAL, "tiny")
    network = Transformer(spec.shape)
    save(network, spec, tmp_path / "tiny", tokenizer=byte_tokenizer(), shard_bytes=limit)
    model = load(tmp_path / "tiny")
    assert model.spec == spec
    tokens = torch.arange(30)[None]
    assert torch.equal(model.net.head(model.net(tokens)), network.head(network(tokens)))
    assert (tmp_path / "tiny" / "model.safetensors").exists() == (limit == 10**9)


def test_a_dream_folder_comes_back_as_it_was(tmp_path):
    spec = dream.read_config(DREAM_CONFIG, DREAM_SPECIAL, "out")
    network = Transformer(spec.shape)
    write_dream_tokenizer(tmp_path / "tokenizer")
    save(network, spec, tmp_path / "out", tokenizer=tmp_path / "tokenizer")
    model = load(tmp_path / "out")
    assert model.spec == spec
    assert torch.equal(model.net.layers[0].attention.q_proj.bias, network.layers[0].attention.q_proj.bias)
    assert model.tokenizer.added == DREAM_SPECIAL


def test_tensor_names_and_dtype_are_the_released_ones(tmp_path, net):
    save(net, SPEC, tmp_path, "bfloat16")
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert set(file.keys()) == llada_tensors().keys()
        assert all(file.get_tensor(name).dtype == torch.bfloat16 for name in file.keys())  # noqa: SIM118
    assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == "bfloat16"


def test_a_second_export_replaces_the_first_whole(tmp_path, net):
    save(net, SPEC, tmp_path, tokenizer=byte_tokenizer(), shard_bytes=20_000)
    other = Transformer(SPEC.shape)
    save(other, SPEC, tmp_path)
    assert torch.equal(load(tmp_path).net.norm.weight, other.norm.weight)
    assert torch.equal(load(tmp_path).net.embed.weight, other.embed.weight)
    save(net, SPEC, tmp_path, shard_bytes=20_000)
    assert torch.equal(load(tmp_path).net.embed.weight, net.embed.weight)
    assert not (tmp_path / "model.safetensors").exists()


def test_a_tokenizer_file_may_be_given(tmp_path, net):
    byte_tokenizer().save(str(tmp_path / "mine.json"))
    save(net, SPEC, tmp_path / "out", tokenizer=tmp_path / "mine.json")
    assert load(tmp_path / "out").tokenizer.encode("a") == [byte_tokenizer().encode("a").ids[0]]


def test_shards_keep_order_and_limit():
    assert list(split_shards({"a": 4, "b": 4, "c": 9, "d": 1}, 8)) == [["a", "b"], ["c"], ["d"]]


def test_unknown_dtype(tmp_path, net):
    with pytest.raises(InputError, match=r"bf16.*bfloat16"):
        save(net, SPEC, tmp_path, "bf16")


def test_a_failed_write_keeps_the_old_file(tmp_path):
    place = tmp_path / "file"
    place.write_text("old")

    def fail(part):
        part.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(WorkError, match=r"could not be written.*No space left.*Is the disk full"):
        write_whole(place, fail)
    assert place.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_made(tmp_path, net):
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match=r"config.json could not be written"):
        save(net, SPEC, tmp_path / "file" / "out")


FULL_DISK = """
import resource, signal, sys
from starr.errors import WorkError
from starr.model.files.convert import save
from starr.model.load import load
model = load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    save(model.net, model.spec, sys.argv[1])
except WorkError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_disk_that_takes_no_more_is_one_line_and_loses_nothing(tmp_path, net):
    save(net, SPEC, tmp_path, tokenizer=byte_tokenizer())
    child = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "model.safetensors could not be written" in child.stdout
    assert len(child.stdout.splitlines()) == 1
    assert torch.equal(load(tmp_path).net.embed.weight, net.embed.weight)
    assert not list(tmp_path.glob("*.part"))
