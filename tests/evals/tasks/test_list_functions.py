import pytest

from starr.errors import InputError
from starr.evals.tasks.list_functions import (
    TASK,
    TESTS_PER_PROBLEM,
    apply_chain,
    belongs,
    extract_code,
    formed,
    generate,
    grade,
    load,
    write_tests,
)
from starr.evals.tasks.list_ops import BY_NAME, COUNT, JOIN, LIST_OPS, NUMBER_ENDS, NUMBER_OPS, WORD_OPS, Chosen
from starr.evals.tasks.list_styles import STYLES, write_function


def run(code):
    scope = {}
    exec(code, scope)
    return scope["f"]


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_reference_answer_passes_its_tests(split):
    for problem in generate(5, 300, split):
        function = run(problem.answer)
        assert len(problem.tests) == TESTS_PER_PROBLEM
        for arguments, expected in problem.tests:
            assert function(*arguments) == expected, problem


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("op", NUMBER_OPS + LIST_OPS + NUMBER_ENDS + (COUNT,), ids=lambda op: op.name)
def test_every_style_means_the_same(style, op):
    chain = [Chosen(NUMBER_OPS[2], 3), Chosen(LIST_OPS[1], 0), Chosen(op, max(op.low, 1))]
    xs = [9, -4, 3, 8, 5, 14, 6, 7]
    assert run(write_function(style, chain))(xs) == apply_chain(chain, xs)


@pytest.mark.parametrize("style", STYLES)
def test_strings_in_every_style(style):
    chain = [Chosen(op, op.low) for op in WORD_OPS[:3]] + [Chosen(JOIN, 0)]
    assert run(write_function(style, chain))(["to", "stone", "sun"]) == "ENOTS NUS"


def test_chains_of_the_splits_are_disjoint_and_single_operations_shared():
    names = [op.name for op in NUMBER_OPS]
    pairs = [[a, b] for a in names for b in names if a != b]
    assert all(belongs(pair, "train") != belongs(pair, "test") for pair in pairs)
    assert any(belongs(pair, "test") for pair in pairs)
    assert all(belongs([name], "train") and belongs([name], "test") for name in names)


def test_leads_of_the_splits_are_disjoint():
    def leads(split):
        return {problem.prompt.split(" that ")[0] for problem in generate(2, 200, split)}

    assert leads("test") == {"Write a function", "Give me a Python function f", "Define a short function"}
    assert not leads("train") & leads("test")


def test_the_packaged_problems_are_1000_distinct_ones():
    rows = load()
    assert len(rows) == len({row.prompt for row in rows}) == 1000
    assert {row.steps for row in rows} == {1, 2, 3, 4}
    assert all(row.task == TASK for row in rows)
    assert not {problem.prompt for problem in generate(0, 3000, "train")} & {row.prompt for row in rows}


def test_code_is_taken_from_a_fence_or_whole():
    assert extract_code("Sure:\n```python\ndef f(xs):\n    return 1\n```\nbye") == "def f(xs):\n    return 1\n"
    assert extract_code("def f(xs): return 1") == "def f(xs): return 1"


def test_grading_runs_the_hidden_tests_in_the_sandbox():
    problem = load()[0]
    assert grade(problem, problem.answer)
    assert not grade(problem, "def f(xs):\n    return None")
    assert not grade(problem, "not python")
    assert write_tests(problem).count("assert program.f(") == TESTS_PER_PROBLEM


def test_an_answer_is_formed_in_one_style_and_not_in_a_mixture():
    mixed = 0
    for problem in generate(5, 200, "test"):
        chain = [Chosen(BY_NAME[name], k) for name, k in problem.facts["chain"]]
        texts = {style: write_function(style, chain) for style in STYLES}
        assert all(formed(problem, text) for text in texts.values())
        if len(chain) == 2 and not any(item.op.whole for item in chain):
            one, two = (texts[style].splitlines() for style in ("comprehension", "builtins"))
            text = "\n".join([*one[:2], two[2]])
            assert not formed(problem, text)
            assert all(run(text)(*arguments) == expected for arguments, expected in problem.tests)
            mixed += 1
    assert mixed > 5


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="split"):
        next(generate(0, 1, "dev"))
