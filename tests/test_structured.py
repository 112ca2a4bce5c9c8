"""The page about structured answers: its examples run, one after another, as a reader would type them."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "structured.md"


def test_the_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
