"""``starr calibrate`` from prompts to a rule that decodes, on a model of random weights."""

import json
import re

import pytest

from starr.fit.calibrate.costs import runs_of


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"prompt {n}"}) + "\n" for n in range(22)))
    return path


def test_prompts_give_a_rule_and_the_rule_decodes(starr, tiny, prompts, tmp_path):
    rule, picture = tmp_path / "rule.json", tmp_path / "rule.svg"
    flags = ("--model", tiny, "--max-tokens", 8, "--work", tmp_path / "work", "-o", rule, "--plot", picture)
    made = starr("calibrate", "--input", prompts, *flags)
    assert made.code == 0, made.err
    assert f"calibrated:rule={rule}" in made.err
    tenths = re.findall(r"^(\d+)/(\d+) ", made.err, re.MULTILINE)
    assert len(tenths) == 10, "a log shows every tenth of the rows"
    assert tenths[-1][0] == tenths[-1][1] == str(runs_of(22))
    assert picture.read_text().lstrip().startswith("<?xml")
    assert json.loads(rule.read_text())["fitted_on"]["prompts"] == 22
    found = starr("run", "ab", "--model", tiny, "--max-tokens", 8, "--strategy", f"calibrated:rule={rule}", "--json")
    assert found.code == 0, found.err
    assert 1 <= json.loads(found.out)["stats"]["forwards"] <= 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "calibrate takes TASK or --input FILE, not both"),
        (["word-problems", "--prompts", 3], "--prompts must be a whole number within [20"),
        (["word-problem"], "word-problem"),
    ],
)
def test_wrong_use_is_one_line(starr, tiny, arguments, words):
    found = starr("calibrate", *arguments, "--model", tiny)
    assert found.code == 2
    assert words in found.line
