"""The benchmarks of block-causal and expert models run and say what they promise; their times are not judged here."""

import pytest

from benchmarks import blocks, experts
from tests.packaged import each_packaged


@pytest.mark.parametrize("name", [None, *each_packaged(blocks.NAME)])
def test_blocks(name, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "bundled_folder", lambda _: tmp_path / "absent")
    given = [] if name is None else ["--model", name]
    (row,) = blocks.main([*given, "--canvas", "32", "--repeats", "1", "--out", str(tmp_path)])
    assert row["same tokens"]
    assert row["times fewer positions"] > 1
    assert row["exact positions/token"] < 10  # prompt, steps and seals of a canvas of 32
    assert row["first ms"] > 0
    assert "| canvas |" in (tmp_path / "blocks.md").read_text()


def test_experts():
    rows = experts.main(["--width", "16", "--expert-width", "8", "--tokens", "1", "4", "--repeats", "1"])
    assert [row["tokens"] for row in rows] == [1, 4]
    assert rows[0]["read"] == 1.0
