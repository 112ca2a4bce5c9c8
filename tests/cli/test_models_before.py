"""Before a download: what a model on the hub is and whether it fits, from its config alone."""

import json
import shutil
from pathlib import Path

import pytest

from starr.errors import InputError


@pytest.fixture
def hub(tmp_path, tiny, monkeypatch):
    """A hub that has the tiny model: gives the files that were asked for, and keeps what was."""
    asked = []

    def snapshot_download(name, allow_patterns=None, local_files_only=False, **_):
        if local_files_only and allow_patterns is None:
            raise InputError("not in the cache")
        asked.append(allow_patterns)
        folder = tmp_path / "snapshot"
        folder.mkdir(exist_ok=True)
        for pattern in allow_patterns:
            for file in Path(tiny).glob(pattern):
                shutil.copy(file, folder)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return asked


def test_a_model_is_shown_without_its_weights(starr, hub, tiny):
    facts = json.loads(starr("models", "show", "someone/tiny", "--json").out)
    here = json.loads(starr("models", "show", tiny, "--json").out)
    assert not [pattern for pattern in hub[0] if "safetensors" in pattern]
    for name in ("family", "parameters", "shape", "context", "attention"):
        assert facts[name] == here[name]
    assert "download someone/tiny" in facts["files"]
    for dtype in ("float32", "bfloat16", "float16"):
        assert f"in {dtype} (weights" in facts["needs"]


def test_what_does_not_fit_is_said(starr, hub, monkeypatch):
    monkeypatch.setattr("starr.model.files.memory.available", lambda device: 10)
    assert json.loads(starr("models", "show", "someone/tiny", "--json").out)["needs"].count("does not fit") == 3
    monkeypatch.setattr("starr.model.files.memory.available", lambda device: 10**12)
    needs = json.loads(starr("models", "show", "someone/tiny", "--json").out)["needs"]
    assert (needs.count("fits"), needs.count("does not fit")) == (3, 0)


def test_download_fetches_all_and_names_the_folder(starr, hub):
    result = starr("models", "download", "someone/tiny")
    assert result.code == 0
    assert "*.safetensors" in hub[0]
    assert any(Path(result.out.strip()).glob("*.safetensors"))


def test_the_weights_of_8_billion_parameters_are_16_gigabytes(starr, tmp_path, tiny):
    """As README says: two bytes each in bfloat16."""
    config = json.loads((Path(tiny) / "config.json").read_text())
    big = {"d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 32, "mlp_hidden_size": 12288}
    for file in Path(tiny).iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | big | {"embedding_size": 126464, "vocab_size": 126464}))
    facts = json.loads(starr("models", "show", tmp_path, "--json").out)
    assert facts["parameters"].startswith("8,")
    assert "in bfloat16 (weights 16.0 GB" in facts["needs"]
