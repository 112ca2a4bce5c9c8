import json
import re
from pathlib import Path

import pytest

from starr.model.files.hub import bundled_folder
from tests.packaged import each_packaged
from training.card import with_tables
from training.data import Mix
from training.evaluate import STRATEGIES, TASKS, tables
from training.train import mix


@pytest.mark.parametrize("name", each_packaged())
def test_the_card_has_the_tables_of_the_stored_results(name):
    folder = bundled_folder(name)
    card = (folder / "README.md").read_text(encoding="utf8")
    assert card == with_tables(card, tables(json.loads((folder / "results.json").read_text())))


@pytest.mark.parametrize("name", each_packaged())
def test_the_cards_command_names_the_dtype_of_its_tables(name):
    """Without it a machine takes the dtype that is fastest there, and prints other numbers."""
    card = " ".join((bundled_folder(name) / "README.md").read_text(encoding="utf8").split())
    (told,) = re.findall(r"`(python -m training.evaluate [^`]+)`", card)
    assert "--dtype bfloat16" in told
    assert name == "bundled" or f"--model {name} " in told


def test_the_mix_that_is_printed_can_be_typed():
    (told,) = re.findall(r"`--mix (\S+)`", (Path(__file__).parents[2] / "training" / "README.md").read_text())
    assert mix(told) != Mix()


def test_tables_of_a_card_are_replaced_and_its_text_stays():
    old, new = "| task | a |\n|---|---|\n| t | 1 |\n\n| task | b |\n| t | 2 |", "| task | a |\n|---|---|\n| t | 3 |"
    assert with_tables(f"# Card\n\nText.\n\n{old}\n\n## Limits\n\n- one\n", new) == (
        f"# Card\n\nText.\n\n{new}\n\n## Limits\n\n- one\n"
    )
    assert with_tables("# Card\n\nText.\n", new) == f"# Card\n\nText.\n\n{new}\n"


@pytest.mark.parametrize("name", each_packaged())
def test_the_stored_results_cover_every_task_and_strategy(name):
    records = json.loads((bundled_folder(name) / "results.json").read_text())
    assert {(r["task"], r["strategy"]) for r in records} == {(task, s) for task in TASKS for s in STRATEGIES}
    assert all(r["n"] >= 60 for r in records)


def test_a_row_has_grades_intervals_and_the_paired_difference():
    pair = {"n": 4, "difference": -0.25, "interval": (-0.6, 0.2)}
    part = {"n": 4, "right": 1.0, "formed": 0.75, "both": 0.75, "both_interval": (0.301, 0.954), "forwards": 8.0}
    run = {"task": "t", "canvas": 64, "strategy": "static", "tokens_per_forward": 2.5, **part}
    lines = tables([run | {"kinds": {"copy": part}, "to_confidence": pair}]).splitlines()
    assert lines[2] == (
        "| t | 64 | `confidence:steps=16` | 4 | 100.0 | 75.0 | 75.0 (30.1 to 95.4) | -25.0 (-60.0 to +20.0), n = 4 "
        "| 8.0 | 2.50 |"
    )
    assert lines[-1] == "| t | `confidence:steps=16` | copy | 4 | 100.0 | 75.0 | 75.0 (30.1 to 95.4) | 8.0 |"
