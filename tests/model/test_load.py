import ast
import json
from pathlib import Path

import pytest
import torch

import starr
import starr.model
from starr.errors import LoadError, WorkError
from starr.model import device
from starr.model.load import check_finite, load
from starr.model.numbers import Outcome
from tests.model.tiny import LLADA_CONFIG, write_llada
from tests.tiny import tiny_model


def test_a_model_has_all_its_parts(tmp_path):
    model = load(write_llada(tmp_path / "tiny"))
    assert model.name == model.spec.name == "tiny"
    assert (model.device, model.dtype) == (torch.device("cpu"), torch.float32)
    assert model.tokenizer.has_chat
    assert model.spec.mask_id == model.tokenizer.added["<|mdm_mask|>"]


def test_dtype_asked_for(tmp_path):
    if device.explain_half_trouble("bfloat16"):
        pytest.skip("bfloat16 does not work on this CPU")
    assert load(write_llada(tmp_path), dtype="bfloat16").dtype == torch.bfloat16


def test_a_dying_dtype_falls_back(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "find_outcome", lambda _: Outcome("the trial process was killed by signal 4"))
    with pytest.warns(UserWarning, match="using float32"):
        assert load(write_llada(tmp_path), dtype="bfloat16").dtype == torch.float32


def test_bfloat16_stays_near_float32(tmp_path):
    folder = write_llada(tmp_path)
    if device.explain_half_trouble("bfloat16"):
        pytest.skip("bfloat16 does not work on this CPU")
    tokens = torch.arange(20)[None]
    full, half = load(folder).net, load(folder, dtype="bfloat16").net
    expected, got = full.head(full(tokens)), half.head(half(tokens))
    assert got.dtype == torch.bfloat16
    assert (got.float() - expected).abs().mean() < 0.05 * expected.std()


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path):
    config = LLADA_CONFIG | {"embedding_size": 260, "vocab_size": 260}
    with pytest.raises(LoadError, match="ids up to 261, the model a vocabulary of 260"):
        load(write_llada(tmp_path, config=config))


def test_an_empty_folder(tmp_path):
    with pytest.raises(LoadError, match=r"has no config.json"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "[" * 100_000, "\ud800".encode("utf-16", "surrogatepass")])
def test_unreadable_config(tmp_path, text):
    write_llada(tmp_path)
    (tmp_path / "config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(LoadError, match=r"config.json") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_config_of_another_size_names_the_tensor(tmp_path):
    write_llada(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLADA_CONFIG | {"n_layers": 4}))
    with pytest.raises(LoadError, match=r"blocks.3.attn_norm.weight and 8 more"):
        load(tmp_path)


def test_no_transformers_and_no_pickle_at_run_time():
    for file in Path(starr.model.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & {"transformers", "pickle", "dill"}, file
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                assert file.name == "unpickle.py", "only the child that converts .bin files reads them"
                assert "weights_only=True" in ast.unparse(node)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_named(value):
    model = tiny_model()
    check_finite(model.net)
    model.net.layers[1].mlp.up_proj.weight[3] = value
    with pytest.raises(LoadError, match=r"layers\.1\.mlp\.up_proj\.weight"):
        check_finite(model.net)


def test_the_first_forward_is_checked(monkeypatch):
    model = tiny_model()
    head = model.net.head
    monkeypatch.setattr(model.net, "head", lambda hidden: head(hidden) * torch.nan)
    for name in ("starr", "threshold", "confidence"):
        with pytest.raises(WorkError, match="not numbers"):
            starr.generate(model, "abc", max_tokens=8, strategy=name)
