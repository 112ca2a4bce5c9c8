"""``starr trace vote``: the answer that a run's predictions agreed on (Time Is a Feature, arXiv:2508.09138)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from starr.cli.flags import Common, Json
from starr.cli.report import dump, table


@dataclass(frozen=True, kw_only=True)
class VoteOptions(Common):
    """The flags of ``starr trace vote``."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace file.")]
    weights: Annotated[str, typer.Option(help="How much each step's answer counts: fixed, linear or exp.")] = "exp"
    alpha: Annotated[float, typer.Option(help="With exp: how much more late steps count.")] = 5.0
    json: Json = False


def vote(options: VoteOptions) -> None:
    """Give the answer that most steps agree on.

    Every step is read as if all its proposals were committed; its answer is the number after ####, or the last one.
    """
    from starr.decode.trace import read
    from starr.evals.grading.extract import final
    from starr.research.voting import vote as vote_on

    body = read(options.file)
    found = vote_on(body, final, weights=options.weights, alpha=options.alpha)
    last = final(body.get("text", ""))
    if options.json:
        print(dump({"answer": found.answer, "last": last, "totals": found.totals, "answers": found.answers}))
        return
    share = sum(found.totals.values()) or 1.0
    ranked = sorted(found.totals.items(), key=lambda pair: -pair[1])
    rows = [(answer, found.answers.count(answer), round(total / share, 3)) for answer, total in ranked]
    print(table(("answer", "steps", "share of weight"), rows))
    print(f"\nthe steps agree on {found.answer} · the text says {last}")
