"""Stored results of benchmarks: what is kept, and pages that are made from them alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from benchmarks.conformance import write_page
from benchmarks.stored import Stored
from starr.research.reproduce.result import Context
from tests.reference.cases import CASES

DOCS = Path(__file__).parents[2] / "docs"
WHERE = Context("a command", "a model (weights 1)", "a task", "a machine", "2026-01-01")
STORED = Stored("numbers", "Numbers", "../numbers.md")


def test_rows_go_on_only_with_the_same_task_and_weights(tmp_path):
    assert STORED.known(tmp_path, WHERE) == []
    STORED.write(tmp_path, WHERE, [{"a": 1}])
    assert STORED.known(tmp_path, replace(WHERE, date="2026-01-02")) == [{"a": 1}]
    assert STORED.known(tmp_path, replace(WHERE, model="a model (weights 2)")) == []
    assert STORED.known(tmp_path, replace(WHERE, task="another")) == []


def test_the_list_of_results_leads_to_the_page(tmp_path):
    STORED.write(tmp_path, WHERE, [{"a": 1}])
    assert "[Numbers](../numbers.md), a model: `a command`" in (tmp_path / "README.md").read_text()


def test_every_listed_page_is_there():
    page = DOCS / "results" / "README.md"
    body = page.read_text(encoding="utf8")
    links = [part.partition(")")[0] for part in body.split("](")[1:]]
    assert links
    assert all((page.parent / link).exists() for link in links)


def test_the_conformance_page_is_the_one_of_the_stored_counts(tmp_path):
    stored = json.loads((DOCS / "results" / "conformance.json").read_text(encoding="utf8"))
    write_page(stored, tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf8") == (DOCS / "conformance.md").read_text(encoding="utf8")
    names = {(case.name.partition(":")[0], case.block) for case in CASES}
    assert {(row["strategy or cache"].partition(":")[0], row["block"]) for row in stored["rows"]} == names
