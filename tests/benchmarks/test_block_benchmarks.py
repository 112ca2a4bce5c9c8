"""The benchmarks of block-causal and expert models run and say what they promise; their times are not judged here."""

from benchmarks import blocks, experts


def test_blocks(tmp_path):
    (row,) = blocks.main(["--canvas", "32", "--repeats", "1", "--prompt", "9", "--out", str(tmp_path / "out.json")])
    assert row["same_tokens"]
    assert row["times_fewer_positions"] > 1
    assert (tmp_path / "out.json").exists()


def test_experts():
    rows = experts.main(["--width", "16", "--expert-width", "8", "--tokens", "1", "4", "--repeats", "1"])
    assert [row["tokens"] for row in rows] == [1, 4]
    assert rows[0]["read"] == 1.0
