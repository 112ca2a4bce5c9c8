import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

import starr
from starr.errors import InputError
from starr.evals.tasks import word_patterns as patterns
from starr.evals.tasks.word_problems import (
    TASK,
    Story,
    final_number,
    formed,
    generate,
    generate_small,
    grade,
    load,
    solve,
)
from starr.evals.tasks.word_steps import SIGNS, TIERS, TRAINED_ANYWAY, draw_kinds, draw_steps, is_held_out, is_sensible

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


def test_tiers_have_a_third_each_and_two_to_eight_steps_all_occur():
    problems = list(generate(3, 300))
    assert {problem.steps for problem in problems} == set(range(2, 9))
    assert Counter(problem.kind for problem in problems) == dict.fromkeys(TIERS, 100)
    assert all(problem.steps in TIERS[problem.kind] for problem in problems)


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
    train = {tuple(draw_kinds(rng, "train", 2 + place % 5)) for place in range(1500)}
    test = {tuple(draw_kinds(rng, "test", 2 + place % 5)) for place in range(500)}
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
    counts = Counter(row.kind for row in rows)
    assert set(counts) == set(TIERS)
    assert max(counts.values()) - min(counts.values()) <= 3
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


FACTS = {"first": "Tom", "second": "Mia", "pronoun": "he", "things": "pens"}
FORMED = (
    "So Tom has 4 * 6 = 24 pens. Adding 7 makes 24 + 7 = 31 pens. #### 31",
    "Now he has 4 * 6 = 24 pens. So Mia gets 24 + 7 = 31 pens. #### 31",
    "Then Tom keeps 24 / 2 = 12 pens. The money is 12 * 2 = 24 dollars. #### 24",
    "Step 1: So Tom has 4 * 6 = 24 pens.     \nStep 2:  \nStep 3: Adding 7 makes 24 + 7 = 31 pens. \n#### 31",
    "So Tom has 5 pens. #### 5",
)
BROKEN = (
    "So there has 4 * 6 = 24 pens. #### 24",  # two wordings
    "Nn there are 4 * 6 = 24 pens. #### 24",  # no word
    "So Eva has 4 * 6 = 24 pens. #### 24",  # not of the problem
    "So Tom has 4 * 6 = 24 eggs. #### 24",
    "So Tom has 4 * 6 = 25 pens. #### 25",  # sum
    "Then Tom keeps 25 / 2 = 12 pens. #### 12",  # rest
    "Then Tom keeps 24 / 0 = 12 pens. #### 12",
    "So Tom has 04 * 6 = 24 pens. #### 24",  # numbers are not written so
    "So Tom has ٤ * 6 = 24 pens. #### 24",
    "So he has 31 - 24 = 7 more pens. #### 7",  # a difference names who is ahead
    "Adding 8 makes 24 + 7 = 31 pens. #### 31",  # two numbers
    "Taking 7 leaves 24 + 7 = 31 pens. #### 31",  # sign of another wording
    "So Tom has 4 * 6 = 24 pens. #### 31",  # another result
    "So Tom has 4 * 6 = 24 pens. #### 24 #### 24",
    "So Tom has 4 * 6 = 24 pens.",
    "#### 24",
    "",
)


TOLD = replace(load()[0], facts=FACTS, prompt="Tom has 4 bags with 6 pens in each. Mia gets 7 more pens than Tom has.")


@pytest.mark.parametrize("text", FORMED)
def test_well_formed_answers(text):
    assert formed(TOLD, text)


@pytest.mark.parametrize("text", BROKEN)
def test_broken_answers(text):
    assert not formed(TOLD, text)


def test_a_person_whom_the_prompt_does_not_name_is_not_the_problems():
    """A second one is drawn for every story."""
    alone = replace(TOLD, prompt="Tom has 4 bags with 6 pens in each.")
    assert formed(alone, "So Tom has 4 * 6 = 24 pens. #### 24")
    assert not formed(alone, "So Mia has 4 * 6 = 24 pens. #### 24")


def test_every_reference_is_well_formed(problems):
    assert all(formed(problem, problem.answer) for problem in [*problems, *generate_small(1, 200)])


def test_small_problems_have_small_amounts_and_none_to_three_steps():
    found = list(generate_small(1, 300))
    assert {problem.steps for problem in found} == {0, 1, 2, 3}
    numbers = [int(n) for problem in found for n in re.findall(r"\d+", problem.answer)]
    assert max(numbers) <= 60
    assert sum(n < 10 for n in numbers) > len(numbers) / 3
    assert any("?" not in problem.prompt for problem in found)


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
            steps = draw_steps(rng, draw_kinds(rng, "train", rng.randint(2, 8)))
        story = Story.draw(rng)
        assert len({len(tokenizer.encode(solve(rng, story, steps))) for _ in range(8)}) == 1
