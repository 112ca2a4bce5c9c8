"""Regular expressions of a tokenizer: known ones run in this process, all others in a child that is ended in time."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.cli.main import main
from starr.errors import InputError, LoadError
from starr.model import child
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.text.encoders import KNOWN, encode_here, encode_raw, has_known_expressions, start_encoder
from starr.model.text.rebuild import SPLIT
from starr.model.text.tokenizer import read_tokenizer
from tests.model.tiny import LLADA_SPECIAL, byte_tokenizer, write_llada

EXPLODES = r"(a+)+$"
BUNDLED = read_tokenizer(BUNDLED_FOLDER)._raw
TRAP = ("a" * 22 + "b") * 400  # every run is below the library's own limit for one match
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
WORDS = ["Hello, it's 2026!", "  two \r\n\n lines ", "日本語 ünï 🙂", "<|mdm_mask|> is text", "", "x" * 3000]


def split(pattern):
    parts = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}, BYTES]
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": parts}}


def written(folder: Path, changes: dict) -> Path:
    data = json.loads(byte_tokenizer(LLADA_SPECIAL).to_str())
    (folder / "tokenizer.json").write_text(json.dumps(data | changes))
    return folder


def soon(work, error):
    """The line with which ``work`` ends, within seconds."""
    began = time.monotonic()
    with pytest.raises(error) as caught:
        work()
    assert time.monotonic() - began < 60  # mostly the start of a process on a busy machine
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(child, "SECONDS", 3.0)


@pytest.mark.usefixtures("short")
def test_a_text_on_which_an_expression_explodes_ends_in_one_line_and_the_next_one_is_encoded(tmp_path):
    tokenizer = read_tokenizer(written(tmp_path, split(EXPLODES)))
    said = soon(lambda: tokenizer.encode(TRAP), InputError)
    assert said == "The model's tokenizer took more than 3 seconds or too much memory."
    assert tokenizer.encode("banana") == read_tokenizer(written(tmp_path, {"pre_tokenizer": BYTES})).encode("banana")


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("pattern", ["(unclosed", "a" * 5000, 3])
def test_an_expression_that_cannot_be_compiled_ends_the_load(tmp_path, pattern):
    soon(lambda: read_tokenizer(written(tmp_path, split(pattern))), LoadError)


@pytest.mark.usefixtures("short")
def test_an_expression_that_explodes_on_an_added_token_ends_the_load(tmp_path):
    """The library normalizes added tokens when it reads the file."""
    token = {"id": 300, "content": TRAP, "single_word": False, "lstrip": False, "rstrip": False}
    data = json.loads(byte_tokenizer(LLADA_SPECIAL).to_str())
    added = [*data["added_tokens"], token | {"normalized": True, "special": False}]
    replacing = {"type": "Replace", "pattern": {"Regex": EXPLODES}, "content": "b"}
    folder = written(tmp_path, {"added_tokens": added, "normalizer": replacing})
    assert "took more than 3 seconds" in soon(lambda: read_tokenizer(folder), LoadError)


def test_a_decoder_with_an_expression_is_refused(tmp_path):
    decoder = {"type": "Replace", "pattern": {"Regex": EXPLODES}, "content": ""}
    said = soon(lambda: read_tokenizer(written(tmp_path, {"decoder": decoder})), LoadError)
    assert said == "tokenizer.json: the decoder has a regular expression, which is not supported."


def test_both_encode_the_same_and_refuse_the_same(tmp_path):
    inner = read_tokenizer(written(tmp_path, split(SPLIT)))
    outer = start_encoder(tmp_path / "tokenizer.json")
    assert inner._encode.func is encode_here
    assert [outer(text) for text in WORDS] == [inner.encode(text) for text in WORDS]
    said = [soon(lambda encode=encode: encode("\ud800"), InputError) for encode in (inner.encode, outer)]
    assert said[0] == said[1] == "The text is not valid Unicode. Remove lone surrogates."


def test_only_known_expressions_run_here():
    assert has_known_expressions(json.loads((BUNDLED_FOLDER / "tokenizer.json").read_text()))
    assert has_known_expressions(split(SPLIT))
    assert not has_known_expressions(split(EXPLODES))
    assert not has_known_expressions(split(["a"]))
    assert not has_known_expressions(
        {"normalizer": {"type": "Sequence", "normalizers": [{"pattern": {"Regex": SPLIT + "|x"}}]}}
    )


@pytest.mark.parametrize("pattern", sorted(KNOWN))
def test_known_expressions_take_time_in_proportion(pattern, tmp_path):
    """Long texts of every kind, each with an end that fits nothing before it; their squares would take minutes."""
    encoder = read_tokenizer(written(tmp_path, split(pattern)))
    for text in (" ", " \n", "a", "a1", ".", "'s", " .\r", "\n\n ", "é"):
        began = time.process_time()
        encoder.encode(text * (200_000 // len(text)) + "x")
        assert time.process_time() - began < 10


def test_the_command_line_ends_in_one_line(tmp_path, capsys):
    folder = write_llada(tmp_path / "hostile")
    written(folder, split(EXPLODES))
    assert main(["run", "--model", str(folder), "--max-tokens", "4", "--quiet", TRAP]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "tokenizer took more than 10 seconds" in said


def test_the_library_says_nothing_itself(tmp_path):
    """Its own limit for one match is a panic, with many lines on standard error."""
    code = "import sys; from pathlib import Path; from starr.model.text.tokenizer import read_tokenizer as r\n"
    code += "try: r(Path(sys.argv[1])).encode('a' * 60 + 'b')\nexcept Exception as e: print(e)"
    told = subprocess.run(
        [sys.executable, "-c", code, str(written(tmp_path, split(EXPLODES)))],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert (told.stdout, told.stderr) == ("The model's tokenizer fails on this text.\n", "")


@settings(max_examples=25, deadline=None, database=None)
@given(text=st.text(alphabet="ab \né1.,", max_size=40), times=st.integers(1, 400))
def test_long_texts_have_the_tokens_that_the_library_gives_them(text, times):
    """Long ones go through another call of the library, which lets other threads run."""
    raw = BUNDLED
    assert encode_raw(raw, text * times) == raw.encode(text * times, add_special_tokens=False).ids
