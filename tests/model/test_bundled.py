"""Each bundled model is the one that was trained: its logits and ten decoded problems are stored beside this test."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import starr
from starr.model.families import FAMILIES
from starr.model.families.names import list_parts
from starr.model.files.hub import BUNDLED, bundled_folder
from starr.model.network.masks import block_mask
from tests.packaged import each_packaged
from training.export import TOKENS
from training.tokenizer import BOS, EOS, EOT, MASK

FORMATS = {"bundled": ("llada", None), "bundled-dream": ("dream", None), "bundled-blocks": ("sdar", 4)}
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module", params=each_packaged())
def model(request):
    return starr.load(request.param)


@pytest.fixture(scope="module")
def golden(model):
    name = f"{bundled_folder(model.name).name}_golden.json"
    return json.loads((Path(__file__).parent / name).read_text())


def token(model, ours):
    """The id of one of the first model's special tokens, under its name in the model's own family."""
    return model.tokenizer.added[TOKENS.get(model.spec.family, {}).get(ours, ours)]


def test_the_name_says_the_format(model):
    assert (model.spec.family, model.spec.block_length) == FORMATS[model.name]


@torch.no_grad()
def test_logits_are_the_trainers(model, golden):
    block, tokens = model.spec.block_length, torch.tensor([golden["tokens"]])
    hidden = model.net(tokens, attend=None if block is None else block_mask(tokens.shape[1], block))
    got = model.net.head(hidden[0, golden["places"]])
    assert torch.allclose(got, torch.tensor(golden["logits"]), atol=1e-3, rtol=0)


def test_ten_problems_decode_to_the_stored_answers(model, golden):
    prompts = [row["prompt"] for row in golden["answers"]]
    results = starr.generate(model, prompts, strategy="confidence", max_tokens=golden["canvas"], batch_size=10)
    assert [result.text for result in results] == [row["text"] for row in golden["answers"]]
    assert len(prompts) == 10


def test_weights_are_bfloat16_with_the_familys_names_and_small(model):
    path = bundled_folder(model.name) / "model.safetensors"
    names = {part.tensor for part in list_parts(FAMILIES[model.spec.family].names, model.spec.shape)}
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == names
        assert {file.get_slice(name).get_dtype() for name in names} == {"BF16"}
    assert path.stat().st_size <= 12e6
    assert 4.5e6 < sum(p.numel() for p in model.net.parameters()) < 6e6


def test_special_tokens_carry_the_familys_names_and_ids_agree(model):
    config = json.loads((bundled_folder(model.name) / "config.json").read_text())
    assert config["mask_token_id"] == token(model, MASK) == model.spec.mask_id
    assert config["eos_token_id"] == config["pad_token_id"] == token(model, EOS)
    assert {"<|start_header_id|>", "<|end_header_id|>"} <= set(model.tokenizer.added)
    assert (token(model, EOS), token(model, EOT)) == model.spec.eos_ids


def test_digits_are_split_and_any_text_comes_back(model):
    text = "123 + 45 = 168. Grüße, 東京! \t x"
    tokens = model.tokenizer.encode(text)
    assert model.tokenizer.decode(tokens) == text
    assert [model.tokenizer.decode([token]) for token in model.tokenizer.encode("Tom has 123")][-3:] == [" 1", "2", "3"]


def test_the_chat_template_is_lladas(model):
    added, encode = model.tokenizer.added, model.tokenizer.encode
    begin, end = added["<|start_header_id|>"], added["<|end_header_id|>"]
    expected = [token(model, BOS), begin, *encode("user"), end, *encode("\n\nHi"), token(model, EOT)]
    expected += [begin, *encode("assistant"), end, *encode("\n\n")]
    assert model.tokenizer.chat(HI) == expected


def test_what_it_knows_is_stored_once(model):
    assert model.known is not None
    assert model.known == starr.load(BUNDLED).known
    assert (bundled_folder(model.name) / "known.json").exists() == (model.name == BUNDLED)
