"""Which tasks can be written in one step, shown with a model that knows every marginal exactly.

Its distribution at a masked position is the true one over all answers that agree with the tokens committed so far. One
token per step then always gives an answer; committing everything at once does where there is one answer only. Tokens
are sampled: the most likely tokens of all positions may happen to be an answer (any name removed from a line), draws
that know nothing of one another mostly are not.
"""

from dataclasses import replace
from itertools import permutations

import pytest
import torch
from torch import nn

import starr
from starr.evals.tasks import grids, lines

CANVAS = 32
AT_ONCE, ONE_BY_ONE = "confidence:steps=1", "confidence"


class Marginals(nn.Module):
    """Log marginals (B, O, V) over ``answers`` (N, CANVAS), which stand behind a prompt of ``start`` tokens."""

    def __init__(self, like, answers, start):
        super().__init__()
        self.embed, self.shape, self.mask = like.net.embed, like.net.shape, like.spec.mask_id
        self.answers, self.start = answers, start
        self.counts = nn.functional.one_hot(answers, self.shape.vocab_size).float().flatten(1)

    def forward(self, tokens, wanted, attend=None, added=None):
        canvas = tokens[:, self.start : self.start + CANVAS]
        agrees = ((canvas[:, None] == self.answers) | (canvas[:, None] == self.mask)).all(-1)
        counts = (agrees.float() @ self.counts).unflatten(1, (CANVAS, -1))
        shares = counts / agrees.sum(1).clamp(min=1)[:, None, None]
        places = (wanted - self.start).clamp(0, CANVAS - 1)
        return (shares + 1e-12).log().gather(1, places[..., None].expand(-1, -1, shares.shape[-1]))

    def head(self, hidden):
        return hidden


def all_answers(problem):
    if problem.kind == "latin":
        cells = str.maketrans(grids.DIGITS, problem.facts["signs"])
        return ["\n".join(rows).translate(cells) for rows in grids.squares()]
    if problem.kind == "sudoku":
        return [problem.answer]
    line, new = problem.facts["line"], problem.facts["new"]
    sizes = {len(line) + change for change in (-1, 0, 1)}
    return [text for size in sizes for names in permutations([*line, new], size)
            if lines.grade(problem, text := lines.numbered(list(names)))]  # fmt: skip


def right(module, problem, strategy, seed):
    model = starr.load()
    start = len(model.tokenizer.chat([{"role": "user", "content": problem.prompt}]))
    rows = [model.tokenizer.encode(text) for text in all_answers(problem)]
    answers = torch.tensor([row + [model.spec.eos_ids[0]] * (CANVAS - len(row)) for row in rows])
    known = replace(model, net=Marginals(model, answers, start))
    text = starr.generate(known, problem.prompt, strategy=strategy, max_tokens=CANVAS, temperature=1.0, seed=seed).text
    return module.grade(problem, text) and module.formed(problem, text)


def share(module, kind, strategy, draws=20):
    """Of ``draws`` answers to a problem (of 5 names)."""
    problems = module.generate(5, 6, "test", kinds=(kind,))
    problem = next(problem for problem in problems if len(problem.facts.get("line", "12345")) == 5)
    return sum(right(module, problem, strategy, seed) for seed in range(draws)) / draws


@pytest.mark.parametrize("kind", lines.KINDS)
def test_lines(kind):
    assert share(lines, kind, ONE_BY_ONE, 3) == 1.0
    at_once = share(lines, kind, AT_ONCE)
    assert at_once < 0.8 if kind in lines.DEPENDENT else at_once == 1.0


@pytest.mark.parametrize("kind", grids.KINDS)
def test_grids(kind):
    assert share(grids, kind, ONE_BY_ONE, 3) == 1.0
    at_once = share(grids, kind, AT_ONCE, 3)
    assert at_once == 0.0 if kind in grids.DEPENDENT else at_once == 1.0
