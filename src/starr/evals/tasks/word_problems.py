"""The task ``word-problems``: grade-school problems of 2 to 8 steps with worked solutions in random wording.

Unlimited and exactly checkable: the reference answer has one sentence per step with its equation, then ``#### n``. The
test split uses sequences of step kinds and pairs of sentence opener and phrase that training never sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from starr.evals.tasks import word_patterns as patterns
from starr.evals.tasks.problem import Problem, check_split, load_packaged
from starr.evals.tasks.word_formed import formed as formed
from starr.evals.tasks.word_steps import COMPARISONS, PLAIN, SMALL, TIERS, Step, draw_kinds, draw_steps, tier

TASK = "word-problems"


@dataclass(frozen=True)
class Story:
    """Who and what a problem is about."""

    first: str
    second: str
    other: str
    things: str
    other_things: str
    holders: str
    pronoun: str

    @classmethod
    def draw(cls, rng: Random) -> Story:
        """People, things and places at random."""
        first, second, other = rng.sample(patterns.HE + patterns.SHE, 3)
        things, other_things = rng.sample(patterns.THINGS, 2)
        pronoun = "he" if first in patterns.HE else "she"
        return cls(first, second, other, things, other_things, rng.choice(patterns.HOLDERS), pronoun)

    def words(self, step: Step, steps: list[Step]) -> dict[str, object]:
        """Fillers of a step's patterns; ``S`` holds the amount after the step, ``N`` held it before."""
        holder = self.second if step.second else self.first
        before = self.first if step.kind in COMPARISONS else holder
        ahead = self.leader(steps) if step.kind == "diff" else holder
        behind = self.first if ahead == self.second else self.second
        return {
            "S": holder, "N": before, "A": self.first, "B": self.second, "M": ahead, "L": behind, "T": self.things,
            "H": self.holders, "k": step.right, "a": step.left, "e": step.equation, "D": self.other,
            "O": self.other_things,
        }  # fmt: skip

    def facts(self) -> dict[str, str]:
        """What ``formed`` needs to know."""
        return {"first": self.first, "second": self.second, "pronoun": self.pronoun, "things": self.things}

    def leader(self, steps: list[Step]) -> str:
        """Who has more before the difference: the second person when the last amount was the larger number."""
        return self.second if steps[-2].result == steps[-1].left else self.first


def generate(seed: int, count: int, split: str = "train", tiers: tuple[str, ...] = tuple(TIERS)) -> Iterator[Problem]:
    """``count`` problems of a split, tiers in turn; the same seed gives the same problems on every machine."""
    check_split(split)
    rng = Random(f"{TASK}:{split}:{seed}")
    for index in range(count):
        steps = rng.choice(TIERS[tiers[index % len(tiers)]])
        yield draw_problem(rng, split, steps, f"{TASK}-{split}-{seed}-{index}")


def generate_small(seed: int, count: int) -> Iterator[Problem]:
    """Training problems of none to three steps with small amounts; some leave the question out."""
    rng = Random(f"{TASK}:small:{seed}")
    for index in range(count):
        yield draw_problem(rng, "train", rng.choice((0, 1, 1, 1, 2, 2, 3)), f"{TASK}-small-{seed}-{index}", SMALL)


def load() -> list[Problem]:
    """The 1,000 fixed test problems of the package."""
    return load_packaged(TASK)


def grade(problem: Problem, text: str) -> bool:
    """Whether the number after the last ``####`` is the reference's."""
    return final_number(text) == final_number(problem.answer)


def final_number(text: str) -> int | None:
    """The number after the last ####; None without one."""
    found = re.findall(r"####\s*(-?\d+)", text)
    return int(found[-1]) if found else None


def draw_problem(rng: Random, split: str, count: int, name: str, amounts: tuple[int, int] = PLAIN) -> Problem:
    """A problem of ``count`` steps; one without steps tells an amount and asks for it."""
    story, steps = Story.draw(rng), None
    if not count:
        return draw_told(rng, story, name)
    while steps is None:
        steps = draw_steps(rng, draw_kinds(rng, split, count), amounts)
    prompt = ask(rng, story, steps, split)
    if amounts == SMALL and steps[-1].kind not in patterns.QUESTIONS and rng.random() < 0.1:
        prompt = prompt[: prompt.rindex(". ") + 1]
    return Problem(name, TASK, prompt, solve(rng, story, steps), count, kind=tier(count), facts=story.facts())


def draw_told(rng: Random, story: Story, name: str) -> Problem:
    """A problem without a step: the answer is told."""
    words = {"N": story.first, "S": story.first, "T": story.things, "a": rng.randint(*SMALL)}
    question = pick_sentence(rng, patterns.QUESTION_OPENERS, patterns.QUESTIONS["have"], "train")
    prompt = rng.choice(patterns.STARTS) + rng.choice(("", f" {upper_first(question)}"))
    answer = rng.choice(patterns.TOLD) + " #### {a}"
    return Problem(name, TASK, prompt.format_map(words), answer.format_map(words), 0, facts=story.facts())


def ask(rng: Random, story: Story, steps: list[Step], split: str) -> str:
    """The prompt: a start, a sentence per event (a distractor now and then) and the question."""
    bags = steps[0].kind == "bags"
    start = rng.choice(patterns.BAGS if bags else patterns.STARTS)
    sentences = [start.format_map(story.words(steps[0], steps) | {"N": story.first})]
    for step in steps[bags:]:
        if step.kind in patterns.PHRASES:
            pronoun = not any(other.second for other in steps) and rng.random() < 0.5
            words = story.words(step, steps) | ({"S": story.pronoun} if pronoun else {})
            sentences.append(pick_sentence(rng, patterns.OPENERS, patterns.PHRASES[step.kind], split).format_map(words))
    if rng.random() < 0.15:
        words = story.words(steps[-1], steps) | {"k": rng.randint(2, 20)}
        distractor = pick_sentence(rng, patterns.OPENERS[:2], patterns.PHRASES["distract"], "train")
        sentences.insert(rng.randint(1, len(sentences)), distractor.format_map(words))
    kind = steps[-1].kind if steps[-1].kind in patterns.QUESTIONS else "have"
    question = pick_sentence(rng, patterns.QUESTION_OPENERS, patterns.QUESTIONS[kind], split)
    sentences.append(question.format_map(story.words(steps[-1], steps) | asked(story, steps)))
    return " ".join(upper_first(sentence) for sentence in sentences)


def asked(story: Story, steps: list[Step]) -> dict[str, object]:
    """The person that the question is about."""
    return {"N": story.second if steps[-1].second else story.first}


def pick_sentence(rng: Random, openers: tuple[str, ...], phrases: tuple[str, ...], split: str) -> str:
    """An opener and a phrase: training never draws a held-out pair, the test split draws nothing else."""
    while True:
        opener, phrase = rng.randrange(len(openers)), rng.randrange(len(phrases))
        if patterns.is_held_out_pair(opener, phrase) == (split == "test"):
            return openers[opener] + phrases[phrase]


def solve(rng: Random, story: Story, steps: list[Step]) -> str:
    """The reference answer: a sentence per step in a wording drawn at random, then ``#### n``."""
    sentences = []
    for index, step in enumerate(steps):
        words = story.words(step, steps)
        if not step.second and rng.random() < 0.3:
            words["S"] = story.pronoun
        sentence = rng.choice(patterns.WORDINGS[step.kind] if index else patterns.first_wordings(step.kind))
        sentences.append(upper_first(sentence.format_map(words)))
    return " ".join(sentences) + f" #### {steps[-1].result}"


def upper_first(sentence: str) -> str:
    """A sentence with a capital letter first."""
    return sentence[0].upper() + sentence[1:]
