"""Pickles are converted in a child that reads weights alone; nothing else in them is ever run."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import starr
from starr.errors import InputError, LoadError
from starr.model.files.unpickle import convert_folder
from starr.model.load import load
from tests.model import encoders


def write_pickle(folder: Path, state) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / "pytorch_model.bin")
    return folder


def test_a_pickled_model_loads_after_conversion(tmp_path):
    native = encoders.bert()
    plain = encoders.write(native, tmp_path / "plain")
    folder = tmp_path / "pickled"
    write_pickle(folder, native.state_dict() | {"bert.embeddings.position_ids": torch.arange(66)[None]})
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((plain / name).read_bytes())
    with pytest.raises(LoadError, match="convert"):
        load(folder)
    convert_folder(folder, tmp_path / "new")
    one, other = load(plain, dtype="float32"), load(tmp_path / "new", dtype="float32")
    assert all(torch.equal(a, b) for a, b in zip(one.net.parameters(), other.net.parameters(), strict=True))


def test_shards_are_all_converted(tmp_path):
    folder = tmp_path / "pickled"
    folder.mkdir()
    for name in ("a", "b"):
        torch.save({name: torch.ones(2)}, folder / f"{name}.bin")
    index = {"weight_map": {"a": "a.bin", "b": "b.bin"}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    made = convert_folder(folder, tmp_path / "new")
    assert sorted(key for file in made for key in load_file(file)) == ["a", "b"]


class Evil:
    """Runs a command when a careless reader unpickles it."""

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def test_code_in_a_pickle_is_not_run(tmp_path):
    evil = Evil()
    evil.mark = tmp_path / "ran"
    write_pickle(tmp_path / "evil", {"weight": evil})
    with pytest.raises(LoadError):
        convert_folder(tmp_path / "evil", tmp_path / "new")
    assert not evil.mark.exists()
    assert not list((tmp_path / "new").glob("*"))


def test_a_folder_with_a_model_is_not_written_over(tmp_path):
    folder = write_pickle(tmp_path / "pickled", {"a": torch.ones(2)})
    convert_folder(folder, tmp_path / "new")
    with pytest.raises(InputError):
        convert_folder(folder, tmp_path / "new")


def test_no_pickle_is_an_error(tmp_path):
    with pytest.raises(LoadError):
        convert_folder(tmp_path, tmp_path / "new")


def test_wordpiece_text_and_bytes(tmp_path):
    model = load(encoders.write(encoders.bert(), tmp_path / "model"), dtype="float32")
    read = model.tokenizer
    ids = read.encode("Tom has two apples, caf\u00e9.")
    assert read.decode(ids) == "tom has two apples, caf\u00e9."
    assert b"".join(read.bytes_of(token) for token in ids) == " tom has two apples, caf\u00e9.".encode()
    with pytest.raises(InputError):
        starr.generate(model, "tom", regex="a+", max_tokens=4)


def test_a_list_of_words_is_a_tokenizer(tmp_path):
    folder = encoders.write(encoders.bert(), tmp_path / "model")
    raw = encoders.wordpiece()
    words = sorted(raw.get_vocab(), key=raw.token_to_id)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    model = load(folder, dtype="float32")
    assert model.tokenizer.encode("Tom has apples.") == raw.encode("Tom has apples.", add_special_tokens=False).ids
    assert model.spec.mask_id == raw.token_to_id("[MASK]")
