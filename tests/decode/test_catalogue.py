from __future__ import annotations

from pathlib import Path

import pytest

from starr.decode.catalogue import limits, markdown, rows
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


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("confidence", "steps", "at least 1"), ("threshold", "tau", "0 to 2"), ("adablock", "delimiters", "text"),
        ("starr", "spatial", "true or false"), ("eb", "unit", "nats, bits"),
    ],
)  # fmt: skip
def test_values_are_said_in_words(kind, name, said):
    (row,) = (row for row in rows() if row.name == kind)
    assert [limits(option) for option in row.options if option.name == name] == [said]


def test_rows_tell_what_revokes():
    said = {row.name: row.revokes for row in rows()}
    assert (said["starr"], said["threshold"], said["hierarchy"]) == ("yes", "no", "with revoke=true")


def test_all_promised_names_exist():
    promised = (
        "confidence random margin entropy threshold factor dus starr slowfast saber klass eb wino credit r2 tacg "
        "localleap hierarchy adablock pc remdm edit daedal peaks"
    )
    assert set(promised.split()) <= {row.name for row in rows()}
