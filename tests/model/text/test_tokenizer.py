import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen2Tokenizer

from starr.errors import InputError, LoadError
from starr.model.families import FAMILIES
from starr.model.text.tokenizer import Tokenizer, read_tokenizer
from tests.model.tiny import (
    DREAM_MERGES,
    DREAM_SPECIAL,
    LLADA_SPECIAL,
    alphabet,
    byte_tokenizer,
    write_dream_tokenizer,
)

LLADA = Tokenizer(byte_tokenizer())
QWEN = Qwen2Tokenizer(
    vocab=alphabet() | {first + second: 256 + i for i, (first, second) in enumerate(DREAM_MERGES)} | DREAM_SPECIAL,
    merges=DREAM_MERGES,
)
TEXTS = st.lists(st.one_of(st.text(max_size=8), st.sampled_from([*LLADA_SPECIAL, *DREAM_SPECIAL]))).map("".join)


def read(folder, family="llada"):
    return read_tokenizer(folder, FAMILIES[family].template, FAMILIES[family].template_tokens)


@pytest.fixture(scope="module")
def dream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dream")
    write_dream_tokenizer(folder)
    return read(folder, "dream")


@settings(deadline=None, max_examples=100)
@given(TEXTS)
def test_text_survives_and_never_holds_a_special_token(text):
    ids = LLADA.encode(text)
    assert LLADA.decode(ids) == text
    assert not set(ids) & set(LLADA_SPECIAL.values())


def test_added_tokens_that_are_not_special_are_text_too():
    raw = byte_tokenizer()
    raw.add_tokens(["<tool>"])
    tokenizer = Tokenizer(raw)
    assert tokenizer.added["<tool>"] == 262
    assert 262 not in tokenizer.encode("a <tool> b")
    assert tokenizer.decode([262]) == "<tool>"  # not special, so it is shown
    assert raw.encode("<tool>").ids == [262]  # the caller's object is left as it was


def test_decode_leaves_special_tokens_out_unless_asked():
    ids = [256, *LLADA.encode("hi"), 258, 257]
    assert LLADA.decode(ids) == "hi"
    assert LLADA.decode(ids, skip_special=False) == "<|startoftext|>hi<|mdm_mask|><|endoftext|>"


def test_pieces_and_bytes_of_single_tokens():
    first, second = LLADA.encode("é")
    assert LLADA.bytes_of(first) + LLADA.bytes_of(second) == "é".encode()
    assert LLADA.piece(first) == "\ufffd"
    assert LLADA.piece(258) == "<|mdm_mask|>"
    assert LLADA.bytes_of(258) == b"<|mdm_mask|>"
    assert (LLADA.piece(9999), LLADA.bytes_of(9999)) == ("", b"")
    assert b"".join(LLADA.bytes_of(i) for i in range(256)) == bytes(
        byte for _, byte in sorted((letter, LLADA.bytes_of(i)[0]) for letter, i in alphabet().items())
    )


def test_every_byte_has_its_own_token():
    assert {LLADA.bytes_of(i) for i in range(256)} == {bytes([byte]) for byte in range(256)}


def test_lone_surrogate_is_one_line():
    with pytest.raises(InputError, match="not valid Unicode"):
        LLADA.encode("a\ud800")


def test_size_is_one_more_than_the_largest_id(dream):
    assert LLADA.size == 262
    assert dream.size == 272


def test_dream_added_tokens_keep_their_released_ids(dream):
    assert dream.added == DREAM_SPECIAL
    assert dream.special_ids == set(DREAM_SPECIAL.values())


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.text(max_size=30), st.text("Hel wo'sS12\r\n\t .é\u0301", max_size=30)))
def test_dream_tokenizer_equals_qwen2(dream, text):
    assert dream.encode(text) == QWEN(text)["input_ids"]


def test_dream_merges_apply(dream):
    assert dream.encode("Hell w") == [258, 259]


def test_added_tokens_json_is_read(tmp_path):
    write_dream_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "added_tokens.json").write_text(json.dumps(DREAM_SPECIAL))
    assert read(tmp_path, "dream").added == DREAM_SPECIAL


def test_template_is_built_in_only_where_its_tokens_exist(tmp_path):
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert read(tmp_path).has_chat
    byte_tokenizer(["<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>"]).save(str(tmp_path / "tokenizer.json"))
    base = read(tmp_path)
    assert not base.has_chat
    with pytest.raises(InputError, match="no chat template"):
        base.chat([{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("content", ["", "{", '{"model": 1}', "\x00\xff"])
def test_unreadable_tokenizer_is_one_line(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(LoadError) as caught:
        read(tmp_path)
    assert "tokenizer" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_tokenizer_is_one_line(tmp_path):
    with pytest.raises(LoadError, match=r"has no tokenizer"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("vocab.json", "{"),
        ("vocab.json", '{"a": "b"}'),
        ("merges.txt", "q zz\n"),
        ("tokenizer_config.json", "[]"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": {"content": "y"}}}'),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"7": {}}}'),
    ],
)
def test_broken_dream_tokenizer_files_are_one_line(tmp_path, file, content):
    write_dream_tokenizer(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(LoadError) as caught:
        read(tmp_path, "dream")
    assert "\n" not in str(caught.value)
