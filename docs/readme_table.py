"""Writes the table of results in README.md from docs/results/table1.json: python docs/readme_table.py

Numbers of the README come from a stored result and nowhere else; a test compares the two.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
COLUMNS = (
    "run", "accuracy %", "right %", "formed %", "both %", "95 % interval", "difference", "forwards", "positions",
    "tokens/s", "speed-up (forwards)", "speed-up (seconds)",
)  # fmt: skip
BEGIN, END = "<!-- table1: python docs/readme_table.py -->", "<!-- end of table1 -->"


def cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def table(result: dict[str, Any]) -> str:
    """The result as it stands in the README: its command, its machine and date, and the columns that matter most."""
    rows = result["rows"]
    columns = [column for column in COLUMNS if column in rows[0]]
    lines = [columns, ["---"] * len(columns), *([cell(row[column]) for column in columns] for row in rows)]
    told = f"`{result['command']}` on {result['machine']}, n = {rows[0]['n']}, {result['date']}:"
    return f"{BEGIN}\n{told}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n{END}"


def put(page: Path, block: str) -> None:
    """Replace what stands between the block's first and last line on a page."""
    begin, end = block.splitlines()[0], block.splitlines()[-1]
    text = page.read_text(encoding="utf8")
    found = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, text, flags=re.DOTALL)
    page.write_text(found, encoding="utf8")
    print(f"wrote {page.name}")


def main() -> None:
    put(README, table(json.loads((DOCS / "results" / "table1.json").read_text(encoding="utf8"))))


if __name__ == "__main__":
    main()
