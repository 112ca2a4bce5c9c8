"""``starr run --input -o``: results that are there are never overwritten, and never joined with others."""

import json

import pytest


@pytest.fixture
def source(tmp_path):
    """A file of four prompts."""
    file = tmp_path / "prompts.jsonl"
    file.write_text("".join(f'"hello {i}"\n' for i in range(4)))
    return file


@pytest.fixture
def out(run, source, tmp_path):
    """Results of the first two, as after a kill: the third was cut short."""
    file = tmp_path / "out.jsonl"
    assert run("run", "--input", source, "-o", file, "--strategy", "confidence", "--stop", "zz").code == 0
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:2]) + lines[2][:9])
    return file


def test_an_existing_file_is_not_overwritten(run, source, out):
    before = out.read_bytes()
    result = run("run", "--input", source, "-o", out, "--strategy", "confidence", "--stop", "zz")
    assert result.code == 2
    assert "--resume" in result.line
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--strategy", "threshold", "--stop", "zz"], ["strategy", "'confidence'", "'threshold'"]),
        (["--strategy", "confidence:steps=3", "--stop", "zz"], ["strategy", "'confidence:steps=3'"]),
        (["--strategy", "confidence"], ["stop", "['zz']", "[]"]),
        (["--strategy", "confidence", "--stop", "zz", "--seed", "4"], ["seed", "0", "4"]),
        (["--strategy", "confidence", "--stop", "zz", "--temperature", "0.5"], ["temperature", "0.0", "0.5"]),
        (["--strategy", "confidence", "--stop", "zz", "--dtype", "float32"], ["dtype", "None", "'float32'"]),
        (["--strategy", "confidence", "--stop", "zz", "--infill"], ["infill", "False", "True"]),
    ],
)
def test_other_settings_are_refused_with_what_differs(run, source, out, flags, words):
    before = out.read_bytes()
    result = run("run", "--input", source, "-o", out, "--resume", *flags)
    assert result.code == 2
    assert all(word in result.line for word in words)
    assert out.read_bytes() == before


def test_the_same_settings_continue_after_the_last_whole_line(run, source, out, tmp_path):
    whole = tmp_path / "whole.jsonl"
    flags = ("--strategy", "confidence", "--stop", "zz", "--quiet")
    assert run("run", "--input", source, "-o", whole, *flags).code == 0
    assert run("run", "--input", source, "-o", out, "--resume", *flags).code == 0
    tokens = [[json.loads(line)["tokens"] for line in file.read_text().splitlines()] for file in (whole, out)]
    assert tokens[0] == tokens[1]
    assert len(tokens[0]) == 4


def test_prompts_may_be_added_and_not_changed(run, source, out):
    flags = ("--strategy", "confidence", "--stop", "zz", "--quiet", "--resume")
    lines = source.read_text().splitlines()
    source.write_text("\n".join([lines[0], '"another"', *lines[2:]]))
    result = run("run", "--input", source, "-o", out, *flags)
    assert (result.code, "prompt 2" in result.line) == (2, True)
    source.write_text("\n".join([*lines, '"one more"']))
    assert run("run", "--input", source, "-o", out, *flags).code == 0
    assert len(out.read_text().splitlines()) == 5


def test_a_file_of_somebody_else_is_not_continued(run, source, tmp_path):
    diary = tmp_path / "diary.txt"
    diary.write_text("a whole line\nand one that is not")
    result = run("run", "--input", source, "-o", diary, "--resume")
    assert result.code == 2
    assert diary.read_text() == "a whole line\nand one that is not"


def test_a_new_file_may_be_resumed(run, source, tmp_path):
    """The first start and the tenth are the same command."""
    out = tmp_path / "new.jsonl"
    for _ in range(2):
        assert run("run", "--input", source, "-o", out, "--resume", "--quiet").code == 0
    assert len(out.read_text().splitlines()) == 4
