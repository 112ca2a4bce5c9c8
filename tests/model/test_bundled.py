"""The bundled model is the one that was trained: its logits and 20 decoded problems are stored beside this test."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import starr
from starr.model.families.llada import NAMES
from starr.model.families.names import parts_of
from starr.model.files import hub

GOLDEN = json.loads((Path(__file__).parent / "bundled_golden.json").read_text())
FOLDER = hub.BUNDLED_FOLDER


@pytest.fixture(scope="module")
def model():
    return starr.load()


@torch.no_grad()
def test_logits_are_the_trainers(model):
    hidden = model.net(torch.tensor([GOLDEN["tokens"]]))
    got = model.net.head(hidden[0, GOLDEN["places"]])
    assert torch.allclose(got, torch.tensor(GOLDEN["logits"]), atol=1e-3, rtol=0)


def test_ten_problems_decode_to_the_stored_answers(model):
    prompts = [row["prompt"] for row in GOLDEN["answers"]]
    results = starr.generate(model, prompts, strategy="confidence", max_tokens=GOLDEN["canvas"], batch_size=10)
    assert [result.text for result in results] == [row["text"] for row in GOLDEN["answers"]]
    assert len(prompts) == 10


def test_weights_are_bfloat16_with_lladas_names_and_small(model):
    path, names = FOLDER / "model.safetensors", {part.tensor for part in parts_of(NAMES, model.spec.shape)}
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == names
        assert {file.get_slice(name).get_dtype() for name in names} == {"BF16"}
    assert path.stat().st_size < 20e6
    assert 4.5e6 < sum(p.numel() for p in model.net.parameters()) < 8.5e6


def test_special_tokens_carry_lladas_names_and_ids_agree(model):
    config = json.loads((FOLDER / "config.json").read_text())
    added = model.tokenizer.added
    assert config["mask_token_id"] == added["<|mdm_mask|>"]
    assert config["eos_token_id"] == config["pad_token_id"] == added["<|endoftext|>"]
    assert {"<|startoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"} <= set(added)


def test_digits_are_split_and_any_text_comes_back(model):
    text = "123 + 45 = 168. Grüße, 東京! \t x"
    tokens = model.tokenizer.encode(text)
    assert model.tokenizer.decode(tokens) == text
    assert [model.tokenizer.decode([token]) for token in model.tokenizer.encode("Tom has 123")][-3:] == [" 1", "2", "3"]


def test_the_chat_template_is_lladas(model):
    added, encode = model.tokenizer.added, model.tokenizer.encode
    begin, end = added["<|start_header_id|>"], added["<|end_header_id|>"]
    expected = [added["<|startoftext|>"], begin, *encode("user"), end, *encode("\n\nHi"), added["<|eot_id|>"]]
    expected += [begin, *encode("assistant"), end, *encode("\n\n")]
    assert model.tokenizer.chat([{"role": "user", "content": "Hi"}]) == expected
