import json
from pathlib import Path

from starr.model import hub
from training.evaluate import STRATEGIES, TASKS, tables

FOLDER = Path(hub.__file__).parent / "bundled"


def test_the_card_has_the_tables_of_the_stored_results():
    card = (FOLDER / "README.md").read_text().splitlines()
    expected = tables(json.loads((FOLDER / "results.json").read_text())).splitlines()
    start = card.index(expected[0])
    assert card[start : start + len(expected)] == expected


def test_the_stored_results_cover_every_strategy_and_all_problems_on_a_canvas_of_128():
    records = json.loads((FOLDER / "results.json").read_text())
    full = {(r["task"], r["strategy"]) for r in records if r["canvas"] == 128 and r["n"] == 1000}
    assert full == {(task, strategy) for task in TASKS for strategy in STRATEGIES}


def test_a_row_has_counts_intervals_and_the_paired_difference():
    pair = {"n": 4, "difference": -0.25, "interval": (-0.6, 0.2)}
    run = {"task": "t", "canvas": 64, "strategy": "s", "n": 4, "right": 3, "by_steps": {"2": [3, 4]}}
    lines = tables([run | {"forwards": 8.0, "tokens": 20.0, "to_confidence": pair}]).splitlines()
    assert lines[2] == "| t | 64 | `s` | 4 | 75.0 (30.1 to 95.4) | -25.0 (-60.0 to +20.0), n = 4 | 8.0 | 2.50 |"
    assert lines[-1] == "| t | 64 | `s` | 2 | 4 | 75.0 (30.1 to 95.4) |"
