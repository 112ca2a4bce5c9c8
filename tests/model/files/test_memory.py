"""Memory known before loading, and files that lie about themselves: one line, within seconds."""

import json
import os
import resource
import shutil
import time

import pytest
import torch

import starr
from starr.cli.main import main
from starr.errors import LoadError
from starr.model.files import memory, weights
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.files.weights import StoredTensor

CPU = torch.device("cpu")


@pytest.fixture
def copied(tmp_path):
    """The bundled model, to be spoiled."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        shutil.copy(BUNDLED_FOLDER / name, folder)
    return folder


def change(folder, name="config.json", **values):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_sizes_are_in_the_unit_that_shows_them():
    assert [memory.gigabytes(size) for size in (21_400_000, 999_000_000, 16_040_000_000)] == [
        "21 MB",
        "999 MB",
        "16.0 GB",
    ]


def refused(folder, words):
    began = time.monotonic()
    with pytest.raises(LoadError, match=words) as caught:
        starr.load(folder, dtype="float32")
    assert time.monotonic() - began < 20
    assert "\n" not in str(caught.value)


def test_eight_billion_parameters_are_refused_with_numbers(monkeypatch, copied):
    shape = starr.load(dtype="float32").spec.shape
    found = {f"w{i}": StoredTensor(copied, (4096, 4096), "BF16") for i in range(478)}  # 8.02 billion
    monkeypatch.setattr(memory, "read_headers", lambda _: found)
    monkeypatch.setattr(memory, "available", lambda _: 21_700_000_000)
    with pytest.raises(LoadError, match=r"needs 32\.1 GB in float32, 21\.7 GB are free.*bfloat16 needs 16\.1 GB"):
        memory.check_memory(copied, shape, CPU, torch.float32)
    memory.check_memory(copied, shape, CPU, torch.bfloat16)
    monkeypatch.setattr(memory, "available", lambda _: 8_000_000_000)
    with pytest.raises(LoadError, match="smaller model"):
        memory.check_memory(copied, shape, CPU, torch.bfloat16)


def test_the_forward_asked_for_counts_and_the_nearest_setting_is_named(monkeypatch, copied):
    shape = starr.load(dtype="float32").spec.shape
    found = memory.read_headers(memory.weight_files(copied))
    one, many = (memory.need(found, shape, 4, memory.Room(rows, 512)).total for rows in (1, 64))
    assert many > 10 * one
    assert memory.need(found, shape, 4, memory.Room(1, 10**9)).total < 2 * one  # no row is longer than the context
    monkeypatch.setattr(memory, "available", lambda _: memory.need(found, shape, 4, memory.Room(10, 512)).total + 9)
    memory.check_memory(copied, shape, CPU, torch.float32, memory.Room(10, 512))
    with pytest.raises(LoadError, match=r"for 12 rows of 512 positions.*--dtype bfloat16 needs"):
        memory.check_memory(copied, shape, CPU, torch.float32, memory.Room(12, 512))
    with pytest.raises(LoadError, match=r"10 rows in one forward need"):
        memory.check_memory(copied, shape, CPU, torch.float32, memory.Room(10**6, 512))
    monkeypatch.setattr(memory, "available", lambda _: one + 9)
    with pytest.raises(LoadError, match=r"1 row in one forward needs"):
        memory.check_memory(copied, shape, CPU, torch.float32, memory.Room(10**6, 512))
    monkeypatch.setattr(memory, "available", lambda _: 9)
    with pytest.raises(LoadError, match=r"for 1 row of 512 positions"):
        memory.check_memory(copied, shape, CPU, torch.float32, memory.Room(1, 512))


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_the_groups_around_count(tmp_path, version):
    """The group itself has no limit, the one around it 4 GB of which 1 GB is used."""
    (tmp_path / "proc/self").mkdir(parents=True)
    line, top = ("4:cpu,memory:/outer/inner", "memory") if version == 1 else ("0::/outer/inner", "")
    (tmp_path / "proc/self/cgroup").write_text(f"{line}\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
    for group, limit, used in (("outer/inner", "max", "1"), ("outer", "4000000000", "1000000000")):
        place = tmp_path / "sys/fs/cgroup" / top / group
        place.mkdir(parents=True, exist_ok=True)
        (place / names[0]).write_text(limit)
        (place / names[1]).write_text(used)
    assert memory.read_group_room(tmp_path) == [3_000_000_000]


def test_progress_is_told_of_every_tensor():
    told = []
    starr.load(dtype="float32", progress=lambda done, of: told.append((done, of)))
    assert told == [(n, len(told)) for n in range(1, len(told) + 1)]
    assert len(told) > 40


def test_the_command_line_counts_its_own_batch_and_canvas(monkeypatch, capsys):
    monkeypatch.setattr(memory, "available", lambda _: 700_000_000)
    assert main(["run", "Tom has 2 apples.", "--max-tokens", "16"]) == 0
    capsys.readouterr()
    assert main(["eval", "word-problems", "--limit", "1", "--batch-size", "100000", "-o", "unused"]) == 2
    assert "for 100000 rows of 128 positions" in capsys.readouterr().err


def test_what_is_available_is_a_number_here():
    free = memory.available(CPU)
    assert free is None or 0 < free < 2**50


def test_the_parts_add_up(copied):
    model = starr.load(dtype="float32")
    found = memory.read_headers(memory.weight_files(BUNDLED_FOLDER))
    asked = memory.need(found, model.spec.shape, 4)
    assert asked.weights == sum(p.numel() * 4 for p in model.net.parameters())
    assert asked.total > asked.weights + asked.tensor > asked.weights


def test_models_show_prints_the_needs(capsys):
    assert main(["models", "show", "bundled", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["needs"]
    assert "in float32" in said
    assert "in bfloat16" in said


@pytest.mark.parametrize("value", [2**31, 2**63, 10**30, -1, 0, 1e9, "8"])
def test_numbers_of_a_config_are_bounded(copied, value):
    for key in ("n_layers", "d_model", "n_heads", "vocab_size", "mlp_hidden_size"):
        if key in json.loads((copied / "config.json").read_text()):
            change(copied, **{key: value})
            refused(copied, key)
            shutil.copy(BUNDLED_FOLDER / "config.json", copied)


@pytest.mark.parametrize("value", [float("inf"), 10**400, 1e300, 1e-300, 0, -1.0, float("nan"), True, "x", 2.0])
def test_the_norms_epsilon_is_bounded(copied, value):
    change(copied, rms_norm_eps=value)
    refused(copied, "rms_norm_eps must be a number from 1e-12 to 1, not .{1,40}[.]$")


@pytest.mark.parametrize("value", [float("inf"), 10**400, 1e13])
def test_other_numbers_are_bounded_too(copied, value):
    change(copied, rope_theta=value)
    refused(copied, "rope_theta must be a number from")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_text_file_of_gigabytes_is_not_read(copied, name):
    with (copied / name).open("wb") as file:
        file.truncate(3 << 30)  # no byte of it is on the disk
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(copied, f"{name} has {3 << 30} bytes")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 100_000  # kilobytes


def write_header(path, entries, size):
    """A safetensors file that says it holds these tensors, and has ``size`` bytes of nothing for them."""
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + size)


def test_more_weights_than_memory_are_told_before_a_file_is_mapped(copied, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda _: 20 << 30)
    entries = {
        f"w{i}": {"dtype": "F32", "shape": [1 << 28], "data_offsets": [i << 30, (i + 1) << 30]} for i in range(108)
    }
    write_header(copied / "model.safetensors", entries, 108 << 30)  # 116 GB
    monkeypatch.setattr(weights, "safe_open", lambda *_, **__: pytest.fail("mapped"))
    refused(copied, r"needs 11\d\.\d GB in float32, 21\.5 GB are free")


def test_a_file_that_cannot_be_mapped_is_one_line(copied, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("unable to mmap 1 bytes")

    monkeypatch.setattr(weights, "safe_open", fail)
    refused(copied, "model.safetensors cannot be read: unable to mmap")


@pytest.mark.parametrize(("count", "words"), [(200_000, "has a header of"), (50_000, "lacks tensor .* more")])
def test_many_tensors_too_many_are_told_from_the_header_alone(copied, monkeypatch, count, words):
    entries = {f"extra.{i}": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i in range(count)}
    write_header(copied / "model.safetensors", entries, 4 * count)
    monkeypatch.setattr(weights, "safe_open", lambda *_, **__: pytest.fail("mapped"))
    refused(copied, words)


def entry(shape, offsets):
    return json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}).encode()


@pytest.mark.parametrize(
    "header",
    [b"", b"[]", b"{", b"null", b'{"a": 1}', b'{"a": {}}', b"[" * 100_000, b"\xff\xfe", entry([-1], [0, 0]),
     entry("x", [0, 0]), entry([1], []), entry([1], [0, "x"]), entry([1], [0, 99])],
)  # fmt: skip
def test_headers_that_are_none_are_damage(tmp_path, header):
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(LoadError, match="truncated or damaged") as caught:
        weights.read_headers([path])
    assert "\n" not in str(caught.value)


def test_more_layers_than_tensors_are_refused_before_any_is_built(copied):
    config = json.loads((copied / "config.json").read_text())
    key = next(name for name in ("n_layers", "num_hidden_layers") if name in config)
    change(copied, **{key: 2**24})
    refused(copied, "layers")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_fifo_is_no_file(copied, name):
    (copied / name).unlink()
    os.mkfifo(copied / name)
    refused(copied, "regular file")


def test_the_mask_is_no_end_of_text_and_the_tokenizers_own(copied):
    config = json.loads((copied / "config.json").read_text())
    change(copied, mask_token_id=config["eos_token_id"])
    refused(copied, "mask")
    change(copied, mask_token_id=5)
    refused(copied, "mask")
