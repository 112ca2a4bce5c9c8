"""Every reproduction runs on a tiny model, writes four readable files, and decodes nothing twice."""

import json
from dataclasses import replace

import pytest
from PIL import Image

from starr.decode.strategies import strategies, strategy
from starr.errors import InputError
from starr.evals.run.bench import Measured
from starr.evals.run.results import ANSWER_ONLY, compare
from starr.evals.run.runs import Run
from starr.evals.stats import aup
from starr.research.reproduce import RESULTS, check_name, paper, reproduce
from starr.research.reproduce.calibrated import against_the_best
from starr.research.reproduce.front import AUP_NOTE, front, sweeps_by_name
from starr.research.reproduce.result import Context, cell, save_figure, table
from starr.research.reproduce.tables import ratio
from tests.evals.toy import toy_bench

QUICK = [name for name in RESULTS if name not in ("front", "table3")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return toy_bench(tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("name", QUICK)
def test_result_writes_table_and_figure(name, bench, tmp_path):
    result, paths = reproduce(name, bench, f"starr reproduce {name}", tmp_path)
    assert [path.suffix for path in paths] == [".md", ".json", ".png"]
    text = paths[0].read_text()
    for needed in (result.title, f"starr reproduce {name}", "model tiny", f"{name}.png", f"- {ANSWER_ONLY}."):
        assert needed in text
    body = json.loads(paths[1].read_text())
    assert body["rows"] == json.loads(json.dumps(list(result.rows)))
    assert len(body["rows"]) >= (1 if name in ("limit", "parallel") else 3)  # a row per kind, and the toy has none
    with Image.open(paths[2]) as picture:
        assert min(picture.size) > 300


def test_tables_compare_with_the_first_row_and_print_the_paper(bench, tmp_path):
    result, paths = reproduce("table1", bench, "c", tmp_path)
    first, *others = result.rows
    assert [row["run"] for row in result.rows] == ["confidence", "threshold", "dus", "starr"]
    assert first["speed-up (forwards)"] == first["speed-up (positions)"] == 1
    assert first["difference"] is None
    assert all(row["n"] == 6 and row["McNemar p"] is not None for row in others)
    assert len(result.paper) == 32
    assert "paper" in paths[0].read_text()
    assert "Doubts" in paths[0].read_text()


def test_table3_has_caches_and_in_place_prompting(tmp_path):
    bench = toy_bench(tmp_path / "bench", count=3, max_tokens=48)
    result, _ = reproduce("table3", bench, "c", tmp_path)
    plain = ["starr", "starr + dkv", "starr + dkv:refresh=3"]
    names = ["confidence", *(f"{name}{ice}" for ice in ("", " + ice-pp", " + ice-pp:threshold=2") for name in plain)]
    assert [row["run"] for row in result.rows] == names
    positions = {row["run"]: row["positions"] for row in result.rows}
    assert positions["starr + dkv"] < positions["starr + dkv:refresh=3"] < positions["starr"]
    assert all(name in result.notes[-2] for name in names if "ice" in name)


def test_ratios_are_over_the_items_that_both_have(bench):
    (found,) = bench.measure([bench.run("confidence")])
    many = [replace(found.samples[0], index=index, forwards=10 * index) for index in range(1, 5)]
    few = [replace(found.samples[0], index=index, forwards=5) for index in (1, 2)]
    assert ratio(many, few, "forwards") == (10 + 20) / 10
    assert ratio(few, many, "forwards") == 10 / 30


def test_a_pair_may_be_compared_in_another_grade(bench):
    (found,) = bench.measure([bench.run("confidence")])
    ours = [replace(sample, right=True, both=False) for sample in found.samples]
    theirs = [replace(sample, right=False, both=False) for sample in found.samples]
    assert compare(ours, theirs, "right")["difference"] == 1
    assert compare(ours, theirs)["difference"] == 0


def test_the_rule_is_compared_with_the_peer_that_is_best_in_both(bench):
    """Of two peers with the same both the one with fewer forwards is the better."""
    (found,) = bench.measure([bench.run("confidence")])

    def measured(name, good, forwards):
        samples = [replace(sample, both=place < good) for place, sample in enumerate(found.samples)]
        return Measured(Run(name), samples, {"both": good / 6, "forwards": forwards})

    runs = [measured("threshold", 5, 20.0), measured("factor", 5, 8.0), measured("starr", 4, 3.0)]
    told = against_the_best([*runs, measured("calibrated", 4, 4.0), measured("calibrated:budget=0.4", 6, 1.0)])
    assert "factor" in told
    assert "-16.7 (" in told
    assert " 2.00 x " in told


def test_index_lists_every_result_in_the_folder(bench, tmp_path):
    (tmp_path / "own.md").write_text("# A page of our own\n")
    for name in ("table1", "zones"):
        reproduce(name, bench, f"starr reproduce {name}", tmp_path)
    index = (tmp_path / "README.md").read_text()
    assert f"(table1.md), {bench.model.name}: `starr reproduce table1`" in index
    assert "[A page of our own](own.md)" in index
    assert f"(zones.md), {bench.model.name}: `starr reproduce zones`" in index


def test_samples_are_shared_between_results(bench, tmp_path, monkeypatch):
    reproduce("table1", bench, "c", tmp_path)
    reproduce("table2", bench, "c", tmp_path)
    before = len(bench.store.samples)
    reproduce("table1", bench, "c", tmp_path)
    reproduce("table2", bench, "c", tmp_path)
    assert len(bench.store.samples) == before


def test_front_ranks_by_area(bench, tmp_path):
    result = front(bench, ("threshold", "confidence"))
    areas = result.data["aup"]
    assert list(areas.values()) == sorted(areas.values(), reverse=True)
    assert AUP_NOTE in result.notes
    assert aup([(4.6, 47.0)], 97.0) > aup([(0.6, 97.0), (2.2, 94.0)], 97.0), "what the note says"
    assert {row["strategy"] for row in result.rows} == {"threshold", "confidence"}
    names = {row["run"] for row in result.rows}
    assert set(result.data["pareto"]) <= names
    save_figure(result, Context("c", "m", "t", "x", "d"), tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_every_strategy_has_a_sweep_of_forms_that_parse():
    assert set(sweeps_by_name()) == {entry.name for entry in strategies()}
    for name, sweep in sweeps_by_name().items():
        forms = sweep.forms(name, 128)
        assert len({strategy(form) for form in forms}) == len(forms) >= 4


def test_the_papers_arithmetic_is_as_doubtful_as_we_say():
    speed_ups = [columns[2][3] for columns in paper.TABLE1.values()]
    assert sum(speed_ups) / 8 == pytest.approx(3.72, abs=0.01)
    product = 3.10 * (7.20 / 3.10) * (10.30 / 3.10)
    assert product == pytest.approx(23.9, abs=0.05)
    for value in (79.21, 83.10, 83.12, 78.13):
        assert all(round(100 * k / 1319, 2) != value for k in range(1320))


def test_unknown_result_is_named():
    with pytest.raises(InputError, match=r"tabel1.*table1"):
        check_name("tabel1")
    assert check_name("all") == list(RESULTS)


def test_markdown_cells():
    assert [cell(v) for v in (None, 0.1234, 12.345, 1234.5, "a|b", 3)] == [
        "–",
        "0.123",
        "12.35",
        "1234.5",
        "a\\|b",
        "3",
    ]
    assert table([]) == "No rows."
    assert table([{"a": 1, "b": None}]).splitlines()[-1] == "| 1 | – |"
