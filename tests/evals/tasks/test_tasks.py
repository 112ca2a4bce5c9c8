"""Prompts and scores of the public benchmarks, against lm_eval's own and the benchmarks' own solutions."""

import ast
import hashlib
import json
import random
import re
from pathlib import Path

import pytest
import yaml

from starr.decode.text import before_stop
from starr.errors import InputError, LoadError
from starr.evals.tasks import MODULES, gsm8k, load_task, math500, mbpp
from starr.evals.tasks.sources import Source, read_rows
from starr.research.references import tally

ALL_PROMPTS = "84119a05b6c77e92415182c7963444e153dd2df04e05e238744f26b105c0a8b6"
FIRST_TWENTY = "f0fbacc3eb1bea38"


def lm_eval_folder(task):
    lm_eval = pytest.importorskip("lm_eval")
    return Path(lm_eval.__file__).parent / "tasks" / task


def digest(prompts):
    return hashlib.sha256("\x00".join(prompts).encode()).hexdigest()


def test_gsm8k_prompts_equal_lm_eval_byte_for_byte(benchmark_data):
    prompts = [item.prompt for item in load_task("gsm8k").items]
    assert len(prompts) == 1319
    assert digest(prompts) == ALL_PROMPTS
    assert digest(prompts[:20]).startswith(FIRST_TWENTY)


def lm_eval_gsm8k_scores(texts, golds):
    """Strict and flexible scores by lm_eval's own filters and metric, as its task file configures them."""
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters.extraction import RegexFilter

    config = yaml.safe_load((lm_eval_folder("gsm8k") / "gsm8k.yaml").read_text())
    metric = {k: v for k, v in config["metric_list"][0].items() if k.startswith(("ignore", "regexes"))}
    scores = []
    for chain in config["filter_list"]:
        options = {k: v for k, v in chain["filter"][0].items() if k != "function"}
        found = RegexFilter(**options).apply([[text] for text in texts], [{}] * len(texts))
        pairs = zip(found, golds, strict=True)
        scores.append([bool(exact_match_hf_evaluate([f[0]], [g], **metric)["exact_match"]) for f, g in pairs])
    return list(zip(*scores, strict=True))


def generated_answers(golds):
    """200 answers of the kinds models give: right, wrong, odd formats, several numbers, cut off."""
    rng = random.Random(7)
    shapes = [
        "#### {g}", "####{g}", "The answer is {g}.", "so ${g}.00", "#### ${g}", "#### {g}.", "{w} and then {g}",
        "#### {g}\n#### {w}", "{g} dollars, not {w}", "-{g}", "#### {w}", "", "no idea", "#### {g} apples", "{g}/{w}",
        "\\boxed{{{g}}}", "#### 1,{g}", "It is {g}%", "{g}...", "#### {g}\n\nDone in 3 steps.", "$ {g}", "a.b.{g}",
    ]  # fmt: skip
    return [rng.choice(shapes).format(g=g, w=rng.randrange(1000)) for g in golds]


def test_gsm8k_scores_equal_lm_eval(benchmark_data):
    task = load_task("gsm8k")
    rows = read_rows(benchmark_data / "gsm8k" / "test.jsonl")
    sample = list(range(0, 1000, 5))
    texts = [row["answer"] for row in rows] + generated_answers([task.items[i].gold for i in sample])
    items = [*task.items, *(task.items[i] for i in sample)]
    golds = [row["answer"] for row in rows] + [rows[i]["answer"] for i in sample]
    expected = lm_eval_gsm8k_scores(texts, golds)
    ours = [(g["strict"], g["flexible"]) for g in (task.grade(i, t).scores for i, t in zip(items, texts, strict=True))]
    assert len(ours) == 1519
    assert ours == expected
    assert all(strict and flexible for strict, flexible in ours[:1319])
    assert set(ours[1319:]) == {(True, True), (True, False), (False, True), (False, False)}


def test_scores_of_answers_that_a_model_gave_equal_lm_eval():
    """200 answers of an earlier bundled model, which made more mistakes; the references end like those of GSM8K."""
    rows = [json.loads(line) for line in (Path(__file__).parent / "generated.jsonl").read_text().splitlines()]
    assert len(rows) == 200
    texts, golds = [row["text"] for row in rows], [row["gold"] for row in rows]
    items = gsm8k.items([{"question": "", "answer": gold} for gold in golds], [{"question": "", "answer": ""}] * 5)
    ours = [(g["strict"], g["flexible"]) for g in (gsm8k.grade(i, t).scores for i, t in zip(items, texts, strict=True))]
    assert ours == lm_eval_gsm8k_scores(texts, golds)
    assert {True, False} <= {strict for strict, _ in ours}


def test_math500_prompt_has_lm_evals_examples(benchmark_data):
    task = load_task("math500")
    assert len(task.items) == 500
    prompt = task.items[0].prompt
    assert prompt.count("Problem:\n") == 5
    assert prompt.count("I hope it is correct.\n\nProblem:") == 4
    assert prompt.endswith("\n\nSolution:")
    assert len(math500.shots()) == 4


@pytest.mark.parametrize(
    ("text", "strict", "verify"),
    [
        ("Final Answer: The final answer is $\\frac{14}{3}$. I hope it is correct.", True, True),
        ("Final Answer: The final answer is $14/3$. I hope it is correct.", True, True),
        ("so \\boxed{\\frac{14}{3}}", False, True),
        ("so \\boxed{14/3}", False, True),
        ("so \\boxed{\\frac{13}{3}}", False, False),
        ("", False, False),
    ],
)
def test_math500_grades(text, strict, verify):
    row = {"problem": "", "solution": "thus $\\boxed{\\frac{14}{3}}$", "answer": "\\frac{14}{3}"}
    scores = math500.grade(math500.item(0, row, ""), text).scores
    assert (scores["strict"], scores["verify"]) == (strict, verify)


def test_mbpp_prompt_equals_lm_evals(benchmark_data):
    tree = ast.parse((lm_eval_folder("mbpp") / "utils.py").read_text())
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "list_fewshot_samples")
    shots = ast.literal_eval(function.body[0].value)
    config = (lm_eval_folder("mbpp") / "mbpp.yaml").read_text()
    template = ast.literal_eval(re.search(r"doc_to_text: (\".*\")", config).group(1))

    def ask(row):
        text = template.replace("{{text}}", row["text"])
        for i in range(3):
            text = text.replace("{{test_list[" + str(i) + "]}}", row["test_list"][i])
        return text

    rows = [r for r in read_rows(benchmark_data / "mbpp" / "mbpp.jsonl") if 11 <= r["task_id"] <= 510]
    lead = "".join(f"{ask(s)}{s['code']}\n[DONE]\n\n" for s in shots)
    items = load_task("mbpp").items
    assert len(items) == 500
    assert items[0].prompt == lead + ask(rows[0])
    assert items[-1].prompt == lead + ask(rows[-1])


def test_humaneval_forms(benchmark_data):
    task = load_task("humaneval")
    assert len(task.items) == 164
    item = task.items[0]
    assert item.prefix.endswith(item.prompt + "\n")
    whole = f"Sure!\n```python\n{item.prompt}{item.reference}```\nDone."
    assert task.grade(item, whole).scores == {"strict": False, "flexible": True}
    assert task.grade(item, item.reference + "```\nExplanation").scores["strict"]


def test_references_pass_and_wrong_answers_fail(benchmark_data):
    for name, every in (("gsm8k", 1), ("math500", 25), ("humaneval", 14), ("mbpp", 40)):
        task = load_task(name)
        assert tally(task, every).failing == ()
        assert tally(task, every, wrong=True).right == 0


def test_bundled_tasks_grade_their_own_answers():
    for name, every in (("word-problems", 1), ("list-functions", 100), ("lines", 1), ("grids", 1)):
        task = load_task(name)
        assert len(task.items) == 1000
        assert tally(task, every).failing == ()
        assert tally(task, every, wrong=True).right == 0


def test_stops_cut_at_the_first():
    assert before_stop("a Question: b </s>", gsm8k.STOPS) == "a "
    assert before_stop("def f(): pass\n[DONE]\nmore", mbpp.STOPS) == "def f(): pass\n"
    assert before_stop("nothing", gsm8k.STOPS) == "nothing"


def test_unknown_task_is_named():
    with pytest.raises(InputError, match=r"gsm9k.*gsm8k"):
        load_task("gsm9k")
    assert set(MODULES) == {
        "gsm8k",
        "math500",
        "humaneval",
        "mbpp",
        "word-problems",
        "list-functions",
        "lines",
        "grids",
    }


def test_data_comes_first_then_environment_then_hub(tmp_path, monkeypatch):
    source = Source("toy", "test.jsonl", "nobody/toy", "test.jsonl")
    monkeypatch.setattr(Source, "from_hub", lambda self: [{"from": "hub"}])
    monkeypatch.delenv("STARR_DATA", raising=False)
    assert source.rows() == [{"from": "hub"}]
    (tmp_path / "env" / "toy").mkdir(parents=True)
    (tmp_path / "env" / "toy" / "test.jsonl").write_text('{"from": "environment"}\n')
    monkeypatch.setenv("STARR_DATA", str(tmp_path / "env"))
    assert source.rows() == [{"from": "environment"}]
    given = tmp_path / "mine.jsonl"
    given.write_text('{"from": "file"}\n')
    assert source.rows(given) == [{"from": "file"}]
    given.write_text("{broken")
    with pytest.raises(LoadError, match=r"mine\.jsonl"):
        source.rows(given)


def test_absent_data_says_what_to_do(monkeypatch):
    monkeypatch.delenv("STARR_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub

    def offline(*_, **__):
        raise OSError("offline")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", offline)
    with pytest.raises(LoadError, match=r"STARR_DATA.*gsm8k/test\.jsonl"):
        load_task("gsm8k")
    with pytest.raises(InputError, match=r"nowhere\.jsonl"):
        load_task("gsm8k", Path("nowhere.jsonl"))
