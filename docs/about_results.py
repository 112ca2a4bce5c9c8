"""Writes docs/results/about.md, what the results say, from the stored results beside it: python -m docs.about_results

It names the weights and the number of items of every page, and the figures that the benchmark itself is judged by.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.readme_table import groups_of, lead, lines_of

FOLDER = Path(__file__).parent / "results"
TITLE = "# About these runs: read this first"
Body = dict[str, Any]


def stored(folder: Path) -> dict[str, Body]:
    """Every stored result with rows, by the name of its file."""
    found = {path.stem: json.loads(path.read_text(encoding="utf8")) for path in sorted(folder.glob("*.json"))}
    return {name: body for name, body in found.items() if "title" in body and body.get("rows")}


def about(folder: Path) -> str:
    """The whole page."""
    found = stored(folder)
    parts = [
        TITLE,
        "*right* is the answer's grade, *formed* says that every part of a text is one that the task allows, and "
        "*both* is what comparisons go by. Forwards, positions and grades are the same on every machine; seconds "
        "depend on the machine. `python -m docs.about_results` writes this page from the results beside it, which "
        "`python -m benchmarks.results` makes.",
        *sections(found),
        "## Pages",
        lines_of(["page", "n", "model", "date"], [[*line] for line in pages(found)]),
        "[serving.md](serving.md) has the server's throughput, fairness and soak; [references.md](references.md) "
        "the graders.",
    ]
    return "\n\n".join(parts) + "\n"


def pages(found: dict[str, Body]) -> Iterator[tuple[str, str, str, str]]:
    """Every page with its items, weights and date; weights that differ from Table 1's are marked as earlier ones."""
    now = weights_of(found.get("table1", {}).get("model", ""))
    for name, body in found.items():
        counts = sorted({row["n"] for row in body["rows"] if isinstance(row.get("n"), int)})
        told = "–" if not counts else f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        page = body.get("page", f"{name}.md")
        earlier = any(now.get(model, own) != own for model, own in weights_of(body["model"]).items())
        yield f"[{body['title']}]({page})", told, body["model"] + " **earlier weights**" * earlier, body["date"]


def weights_of(models: str) -> dict[str, str]:
    """The fingerprint of each model that a page names."""
    return dict(re.findall(r"([\w-]+) \(weights (\w+)", models))


def sections(found: dict[str, Body]) -> list[str]:
    """What the stored results say; a section is left out while its results are not there."""
    parts = []
    if "table1" in found:
        parts += ["## STaRR beside the fixed threshold", *starr_section(found["table1"])]
    if found.get("table1", {}).get("more"):
        parts += ["## One token per step, by kind of item", *kinds_section(found["table1"])]
    falls = [body for name, body in found.items() if name.split("-")[0] == "parallel"]
    if falls:
        parts += ["## What four tokens per step break", *falls_section(falls)]
    ice = ice_section(found["table3"]) if "table3" in found else []
    return parts + (["## In-place prompting", *ice] if ice else [])


def starr_section(body: Body) -> list[str]:
    """Points of both and forwards, starr minus threshold."""
    lines = [
        f"- {task}, {model}: {lead(rows)}" for (model, task), rows in groups_of(body["rows"], body["task"]).items()
    ]
    return ["In points of *both*, and in forwards (Table 1):", "\n".join(lines)]


def kinds_section(body: Body) -> list[str]:
    """Both of confidence for each kind, the lowest first."""
    rows = [row for table in body["more"].values() for row in table if "confidence" in row]
    rows.sort(key=lambda row: row["confidence"])
    cells = [[row["model"], row["task"], row["kind"], str(row["n"]), f"{row['confidence']:.1f}"] for row in rows]
    return ["*Both* in percent, the lowest first (Table 1):", lines_of(["model", "task", "kind", "n", "both %"], cells)]


def falls_section(bodies: list[Body]) -> list[str]:
    """From one token per step to four, in points of both, for each kind."""
    cells = [
        [body["task"], row["kind"], str(row["n"]), f"{row['1 per step, both %']:.1f}", row["from 1 to 4 per step"]]
        for body in bodies
        for row in body["rows"]
    ]
    head = ["task", "kind", "n", "1 per step, both %", "from 1 to 4 per step (points)"]
    return ["A static schedule, the most confident tokens first:", lines_of(head, cells)]


def ice_section(body: Body) -> list[str]:
    """Right and both with in-place prompting, against the same run without."""
    rows = {row["run"]: row for row in body["rows"] if "both %" in row}
    pairs = [(name, re.sub(r" \+ ice\S*", "", name)) for name in rows if " + ice" in name]
    lines = [
        f"- {name} against {plain}: {rows[name]['right %'] - rows[plain]['right %']:+.1f}, "
        f"{rows[name]['both %'] - rows[plain]['both %']:+.1f}"
        for name, plain in pairs
        if plain in rows
    ]
    return ["In points of *right* and of *both* (Table 3):", "\n".join(lines)] if lines else []


def main(folder: Path = FOLDER) -> None:
    (folder / "about.md").write_text(about(folder), encoding="utf8")
    print(f"wrote {folder / 'about.md'}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
