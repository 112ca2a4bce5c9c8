import re
from random import Random

import pytest

import starr
from starr.errors import InputError
from starr.evals import word_patterns as patterns
from starr.evals.word_problems import TASK, Story, final_number, generate, grade, load, solve
from starr.evals.word_steps import SIGNS, TRAINED_ANYWAY, draw_kinds, draw_steps, is_held_out, is_sensible

EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")
MEANING = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}


@pytest.fixture(scope="module", params=["train", "test"])
def problems(request):
    return list(generate(7, 400, request.param))


def test_every_equation_is_right_and_there_is_one_per_step(problems):
    for problem in problems:
        equations = EQUATION.findall(problem.answer)
        assert len(equations) == problem.steps
        assert all(MEANING[sign](int(a), int(b)) == int(result) for a, sign, b, result in equations)


def test_the_final_number_is_the_last_result_and_numbers_stay_below_1000(problems):
    for problem in problems:
        assert final_number(problem.answer) == int(EQUATION.findall(problem.answer)[-1][3])
        assert all(int(number) < 1000 for number in re.findall(r"\d+", problem.prompt + problem.answer))


def test_amounts_have_two_digits_and_told_numbers_one_so_that_the_problem_fixes_the_answers_length(problems):
    for problem in problems:
        for left, sign, right, result in EQUATION.findall(problem.answer):
            assert len(result) == 2
            assert len(left) == 2 or sign == "*"
            assert len(right) == 1 or (sign in "+-" and max(int(left), int(result)) <= 60)


def test_every_operand_was_told_or_computed_before(problems):
    for problem in problems:
        known = set(re.findall(r"\d+", problem.prompt))
        for left, _, right, result in EQUATION.findall(problem.answer):
            assert {left, right} <= known
            known.add(result)


def test_no_pattern_is_left_unfilled(problems):
    assert not any(set("{}") & set(problem.prompt + problem.answer) for problem in problems)


def test_the_same_seed_gives_the_same_problems_and_another_seed_others():
    first, again, other = (list(generate(seed, 20)) for seed in (1, 1, 2))
    assert first == again
    assert not {p.prompt for p in first} & {p.prompt for p in other}


def test_two_to_six_steps_all_occur():
    assert {problem.steps for problem in generate(3, 300)} == {2, 3, 4, 5, 6}


def prompt_pairs(problem):
    """(opener, phrase) index pairs whose sentence occurs in the prompt; fillers are matched as words."""
    found = []
    for table, openers in ((patterns.PHRASES, patterns.OPENERS), (patterns.QUESTIONS, patterns.QUESTION_OPENERS)):
        for kind, phrases in table.items():
            if kind == "distract":
                continue
            for p, phrase in enumerate(phrases):
                for o, opener in enumerate(openers):
                    text = opener + phrase
                    text = text[0].upper() + text[1:] if text[0] != "{" else text
                    regex = re.sub(r"\\{\w\\}", r"\\w+", re.escape(text))
                    if re.search(r"(?:^|[.?] )" + regex, problem.prompt):
                        found.append((o, p))
    return found


def test_sentence_patterns_of_the_splits_are_disjoint():
    for problem in generate(11, 60, "train"):
        assert not any(patterns.is_held_out_pair(*pair) for pair in prompt_pairs(problem))
    for problem in generate(11, 60, "test"):
        assert any(patterns.is_held_out_pair(*pair) for pair in prompt_pairs(problem))


def test_step_sequences_of_the_splits_are_disjoint():
    rng = Random(0)
    train = {tuple(draw_kinds(rng, "train")) for _ in range(500)}
    test = {tuple(draw_kinds(rng, "test")) for _ in range(500)}
    assert not train & test
    assert all(is_held_out(list(kinds)) for kinds in test)
    assert {tuple(kinds) for kinds in TRAINED_ANYWAY} <= train
    assert all(is_sensible(list(kinds)) and set(kinds) <= set(SIGNS) for kinds in train | test)


def test_numbers_that_do_not_fit_a_sequence_are_refused():
    drawn = [draw_steps(Random(seed), ["split", "split", "split", "split", "split"]) for seed in range(50)]
    assert None in drawn


def test_the_packaged_problems_are_1000_distinct_ones_of_the_test_split():
    rows = load()
    assert len(rows) == len({row.prompt for row in rows}) == 1000
    assert all(row.task == TASK and "-test-" in row.id for row in rows)
    train = {problem.prompt for problem in generate(0, 3000, "train")}
    assert not train & {row.prompt for row in rows}


def test_grade_reads_the_number_after_the_last_marker():
    problem = load()[0]
    right = final_number(problem.answer)
    assert grade(problem, problem.answer)
    assert grade(problem, f"#### 1 no, #### {right}")
    assert not grade(problem, f"{right}")
    assert not grade(problem, f"#### {right + 1}")
    assert not grade(problem, "")


def test_an_unknown_split_is_refused():
    with pytest.raises(InputError, match="split"):
        next(generate(0, 1, "dev"))


def test_wordings_of_a_step_have_one_length_so_that_the_problem_fixes_the_answers_length():
    for wordings in patterns.WORDINGS.values():
        assert len(wordings) >= 3
        assert len({len(wording.split()) for wording in wordings}) == 1


def test_a_problem_fixes_the_number_of_its_answers_tokens():
    tokenizer = starr.load().tokenizer
    rng = Random(0)
    for _ in range(40):
        steps = None
        while steps is None:
            steps = draw_steps(rng, draw_kinds(rng, "train"))
        story = Story.draw(rng)
        assert len({len(tokenizer.encode(solve(rng, story, steps))) for _ in range(8)}) == 1
