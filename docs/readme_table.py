"""Writes the tables of README.md: python docs/readme_table.py

The results come from docs/results/table1.json, the strategies from their classes; a test compares both with the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import starr
from starr.decode.strategies.sweep import FAMILIES

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
COLUMNS = (
    "run", "n", "right %", "formed %", "both %", "95 % interval", "difference", "forwards", "forwards / limit",
    "positions",
)  # fmt: skip
BEGIN, END = "<!-- table1: python docs/readme_table.py -->", "<!-- end of table1 -->"
BEGIN_STRATEGIES, END_STRATEGIES = "<!-- strategies: python docs/readme_table.py -->", "<!-- end of strategies -->"
Row = dict[str, Any]


def cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def lines_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))


def groups_of(rows: Sequence[Row], task: str) -> dict[tuple[str, str], list[Row]]:
    """Rows by model and task, as they are in the file; where they name none, they are of one task."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get("model", "bundled"), row.get("task", task)), []).append(row)
    return groups


def table(result: dict[str, Any]) -> str:
    """The result as README has it: one task in full, all models and tasks in *both* and forwards, and who is ahead."""
    groups = groups_of(result["rows"], result["task"])
    (model, task), first = next(iter(groups.items()))
    columns = [column for column in COLUMNS if column in first[0]]
    parts = [
        f"`{result['command']}` on {result['machine']}, {result['date']}; here {task}, {model}:",
        lines_of(columns, [[cell(row[column]) for column in columns] for row in first]),
    ]
    if len(groups) > 1:
        runs = [row["run"] for row in first]
        body = [
            [*key, *(f"{row['both %']:.1f} ({row['forwards']:.1f})" for row in rows)] for key, rows in groups.items()
        ]
        parts += [
            "*Both* in percent, with mean forwards, on every model and task:",
            lines_of(["model", "task", *runs], body),
        ]
    told = "; ".join(f"{task}, {model}: {lead(rows)}" for (model, task), rows in groups.items())
    parts.append(f"STaRR beside the fixed threshold, in points of *both* and in forwards: {told}.")
    return "\n\n".join([BEGIN, *parts, END]).replace(f"{BEGIN}\n\n", f"{BEGIN}\n").replace(f"\n\n{END}", f"\n{END}")


def lead(rows: Sequence[Row]) -> str:
    """How far STaRR is ahead of the threshold."""
    by_run = {row["run"].partition(":")[0]: row for row in rows}
    ours, theirs = by_run["starr"], by_run["threshold"]
    return f"{ours['both %'] - theirs['both %']:+.1f}, {ours['forwards'] - theirs['forwards']:+.1f}"


def strategies_table() -> str:
    """Every strategy with its paper, by family."""
    families: dict[str, list[str]] = {}
    for entry in starr.strategies():
        if (sweep := entry.kind.sweep) is not None:
            paper = entry.paper.split(",")[0].split(" (")[0]
            families.setdefault(sweep.family, []).append(f"`{entry.name}` ({paper})")
    rows = [[family, ", ".join(families[family])] for family in FAMILIES]
    return "\n".join([BEGIN_STRATEGIES, lines_of(["commits", "strategies"], rows), END_STRATEGIES])


def put(page: Path, block: str) -> None:
    """Replace what stands between the block's first and last line on a page."""
    begin, end = block.splitlines()[0], block.splitlines()[-1]
    text = page.read_text(encoding="utf8")
    found = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: block, text, flags=re.DOTALL)
    page.write_text(found, encoding="utf8")
    print(f"wrote {page.name}")


def main() -> None:
    put(README, strategies_table())
    put(README, table(json.loads((DOCS / "results" / "table1.json").read_text(encoding="utf8"))))


if __name__ == "__main__":
    main()
