"""Writes the measured figures of docs/scale.md from docs/results/scale.json: python -m docs.scale_table

Without that file the page says how to make it; a test compares the two.
"""

from __future__ import annotations

import json
from typing import Any

from docs.readme_table import DOCS, put

PAGE, RESULT = DOCS / "scale.md", DOCS / "results" / "scale.json"
BEGIN, END = "<!-- scale: python -m docs.scale_table -->", "<!-- end of scale -->"
ROWS = {
    "one process, all cores": "one_process_all_cores",
    "1 worker": "one_worker",
    "2 workers": "two_workers",
    "what the driver takes from idle workers": "driver_most",
}


def block(found: dict[str, Any] | None) -> str:
    """The figures, and what follows from them for more workers; or how to get them."""
    if found is None:
        told = "Not measured yet: `python -m benchmarks.scale -o docs/results/scale.json`."
        return f"{BEGIN}\n{told}\n{END}"
    cost, own = found["driver_ms_per_sample"], found["ray_ms_per_sample"]
    fed, pace = found["workers_that_one_driver_feeds"], found["pace_at_which_1000_workers_fill_it"]
    measured = [f"| {name} | {found[key]} |" for name, key in ROWS.items()]
    modelled = [f"| {row['workers']} | {row['samples/s']} |" for row in found["model"]]
    lines = [
        BEGIN,
        f"`{found['command']}` on {found['machine']}, {found['date']}:",
        "",
        *("| measured | samples/s |", "|---|---|", *measured),
        "",
        f"A sample costs the driver {cost} ms, {own} ms of it for Ray. At this pace of a worker one driver feeds {fed}",
        f"workers; 1,000 workers saturate it at {pace} samples/s each. The model above gives:",
        "",
        *("| workers | samples/s, extrapolated |", "|---|---|", *modelled),
        END,
    ]
    return "\n".join(lines)


def stored() -> dict[str, Any] | None:
    """The result, if there is one."""
    return json.loads(RESULT.read_text(encoding="utf8")) if RESULT.exists() else None


if __name__ == "__main__":
    put(PAGE, block(stored()))
