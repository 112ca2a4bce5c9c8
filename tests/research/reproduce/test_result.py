"""The index of a folder of results."""

import json

from starr.research.reproduce.result import write_index


def test_the_index_lists_every_page_once_and_passes_over_loose_figures(tmp_path):
    body = {"title": "Table 9", "command": "starr reproduce table9", "date": "2026-01-01", "machine": "a laptop"}
    body |= {"model": "bundled (weights 12ab, bfloat16), other (weights 34cd, bfloat16)"}
    (tmp_path / "table9.json").write_text(json.dumps(body))
    (tmp_path / "table9.md").write_text("# Table 9\n")
    (tmp_path / "speed.json").write_text(json.dumps({"rows": []}))
    (tmp_path / "speed.md").write_text("# Speed of something\n")
    lines = write_index(tmp_path).read_text().splitlines()[3:]
    assert lines == [
        "- [Table 9](table9.md), bundled, other: `starr reproduce table9` (2026-01-01, a laptop)",
        "- [Speed of something](speed.md)",
    ]
