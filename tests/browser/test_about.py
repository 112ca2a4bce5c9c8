"""Above the pictures: what the answer had to keep to."""

from __future__ import annotations

import pytest

from tests.viewer.traces import make

pytestmark = pytest.mark.browser

NOTE = " · confidences are of the allowed tokens"


def lines(one):
    return one.page.locator("#bounds p").all_text_contents()


@pytest.mark.parametrize(
    ("constraint", "shown"),
    [
        ("regex: [0-9]{2}", "regex: [0-9]{2}"),
        ("regex: 1e3: <b>\\u0041</b>", "regex: 1e3: <b>\\u0041</b>"),
        ('choices: ["yes", "f\\u00fcnf"]', 'choices: ["yes","fünf"]'),
        ('json_schema: {"type": "object"}', 'JSON schema: {"type":"object"}'),
        ("a stranger's words", "constraint: a stranger's words"),
    ],
)
def test_a_constraint_stands_under_the_title(show, constraint, shown):
    one = show([make(length=12) | {"constraint": constraint, "sets": []}])
    assert lines(one) == [shown + NOTE]
    assert one.page.locator("#bounds [title]").count() == 0


def test_a_long_constraint_is_cut_and_whole_in_the_tooltip(show):
    text = "|".join(f"word{number}" for number in range(200))
    one = show([make(length=12) | {"constraint": f"regex: {text}"}], width=390)
    assert lines(one) == [f"regex: {text[:71]}…{NOTE}"]
    assert one.page.get_attribute("#bounds code", "title") == text
    assert one.value("document.documentElement.scrollWidth") <= 390


def test_lanes_without_the_constraint_are_left_out(show):
    free, bound = make(length=12), make(length=12, seed=1) | {"constraint": "regex: .+"}
    assert lines(show([free])) == []
    assert lines(show([bound, bound])) == [f"regex: .+{NOTE}"]
    assert lines(show([free, bound, bound])) == [f"lane 2, 3 · regex: .+{NOTE}"]
