"""Hostile tokenizer.json files: each ends in one line, within seconds and without much memory."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.errors import LoadError, StarrError
from starr.model.files.config import MOST
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.text.screen import screen
from starr.model.text.tokenizer import Tokenizer, read_tokenizer
from tests.model.tiny import byte_tokenizer

TEXT = "hello world " * 200


def replace(old, new):
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def sequence(*parts):
    return {"type": "Sequence", "normalizers": list(parts)}


def doubled(times, inner=None):
    single = [{"Sequence": {"id": "A", "type_id": 0}}] * times
    made = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {}}
    return made if inner is None else {"type": "Sequence", "processors": [made] * inner}


HOSTILE = {
    "ids": {"added_tokens": [{"id": 4_000_000_000, "content": "x"}]},
    "ids beyond 64 bits": {"added_tokens": [{"id": 10**20, "content": "x"}]},
    "negative ids": {"added_tokens": [{"id": -1, "content": "x"}]},
    "multiplies": {"normalizer": sequence(*[replace("o", "o" * 10)] * 9)},
    "is long": {"normalizer": replace("o", "x" * 50_000)},
    "matches nothing": {"normalizer": sequence(*[{"type": "Replace", "pattern": {"Regex": ""}, "content": "abc"}] * 9)},
    "prepends": {"normalizer": sequence(*[{"type": "Prepend", "prepend": "y" * 3000}] * 50)},
    "decodes much": {"decoder": {"type": "Sequence", "decoders": [replace("o", "o" * 10)] * 9}},
    "many parts": {"post_processor": doubled(100_000)},
    "parts of parts": {"post_processor": doubled(60, inner=60)},
    "unknown": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "x"}},
}  # fmt: skip


def written(folder: Path, changes: dict) -> Path:
    data = json.loads(byte_tokenizer().to_str())
    (folder / "tokenizer.json").write_text(json.dumps(data | changes))
    return folder


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tokenizers_end_in_one_line(name, tmp_path):
    folder = written(tmp_path, HOSTILE[name])
    began = time.process_time()
    with pytest.raises(LoadError) as caught:
        read_tokenizer(folder)
    assert time.process_time() - began < 5
    assert "\n" not in str(caught.value)


def test_ids_of_the_vocabulary_are_bounded(tmp_path):
    data = json.loads(byte_tokenizer().to_str())
    data["model"]["vocab"]["a"] = 4_000_000_000
    with pytest.raises(LoadError, match=f"from 0 to {MOST}, not 4000000000"):
        read_tokenizer(written(tmp_path, data))
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text('{"a": 4000000000}')
    (tmp_path / "merges.txt").write_text("")
    with pytest.raises(LoadError, match="not 4000000000"):
        read_tokenizer(tmp_path)


def test_dropout_is_refused(tmp_path):
    data = json.loads(byte_tokenizer().to_str())
    data["model"]["dropout"] = 0.5
    with pytest.raises(LoadError, match="dropout"):
        read_tokenizer(written(tmp_path, data))


def test_padding_and_truncation_of_the_file_change_no_prompt(tmp_path):
    pad = {"strategy": {"Fixed": 2_000_000_000}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    cut = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    changes = {"padding": pad | {"pad_type_id": 0, "pad_token": "a"}, "truncation": cut}
    assert read_tokenizer(written(tmp_path, changes)).encode("hello") == Tokenizer(byte_tokenizer()).encode("hello")


def test_the_bundled_tokenizer_passes():
    screen(json.loads((BUNDLED_FOLDER / "tokenizer.json").read_text()))


STAGE = st.recursive(
    st.one_of(
        st.sampled_from([{"type": "NFC"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "ab"}, None, 3, {}]),
        st.builds(replace, st.text("o l", max_size=2), st.text("ol", max_size=9)),
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda parts: sequence(*parts)),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["normalizer", "decoder", "pre_tokenizer", "post_processor", "added_tokens", "model"]), STAGE)
def test_random_stages_load_and_encode_little_or_end_in_one_line(tmp_path_factory, stage, value):
    folder = tmp_path_factory.mktemp("random")
    try:
        found = str(len(read_tokenizer(written(folder, {stage: value})).encode(TEXT)))
    except StarrError as error:
        found = str(error).replace("\n", "a second line")
    assert "a second line" not in found
    assert not found.isdecimal() or int(found) <= 200 * len(TEXT)
