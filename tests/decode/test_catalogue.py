from __future__ import annotations

from pathlib import Path

import pytest

from starr.decode.catalogue import markdown, rows
from starr.decode.strategies import strategies, strategy
from starr.named import text_form

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"


def test_the_page_is_fresh():
    assert PAGE.read_text(encoding="utf8") == markdown(), "run: python -m starr.decode.catalogue > docs/strategies.md"


@pytest.mark.parametrize("entry", strategies(), ids=lambda entry: entry.name)
def test_every_strategy_says_what_it_is(entry):
    made = strategy(entry.name)
    assert text_form(made) == entry.name
    assert entry.paper
    assert entry.help.endswith(".")
    assert all(option.help for option in entry.options)
    for preset in entry.presets:
        strategy(f"{entry.name}:preset={preset}")


def test_rows_tell_what_revokes():
    said = {row.name: row.revokes for row in rows()}
    assert (said["starr"], said["threshold"], said["hierarchy"]) == ("yes", "no", "with revoke=true")


def test_all_promised_names_exist():
    promised = (
        "confidence random margin entropy threshold factor dus starr slowfast saber klass eb wino credit r2 tacg "
        "localleap hierarchy adablock pc remdm edit daedal peaks"
    )
    assert set(promised.split()) <= {row.name for row in rows()}
