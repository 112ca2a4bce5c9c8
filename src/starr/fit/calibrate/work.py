"""``starr.calibrate``: prompts in, a fitted rule out; interrupted work continues where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file

from starr.api import strategy
from starr.decode.strategies.calibrated import Calibrated
from starr.decode.strategies.calibrated.rule import FittedRule
from starr.decode.strategies.fitted import fingerprint
from starr.errors import InputError
from starr.fit.calibrate.costs import with_costs
from starr.fit.calibrate.fit import Recipe, fit, held_out, reliability
from starr.fit.calibrate.prompts import Prompt, request_for
from starr.fit.calibrate.visit import CAREFUL, POLICIES, Watch, as_rows, visit

if TYPE_CHECKING:
    from torch import Tensor

    from starr.decode.request import Request
    from starr.decode.strategies.base import Strategy
    from starr.model.load import Model

CHUNK = 32  # prompts between two saves
LEAST = 20  # prompts
OWN_BUDGETS = (0.1, 0.3, 0.6)  # of the rule being fitted, in the second round
Visited = dict[str, "Tensor"]  # what ``as_rows`` gives


@dataclass(frozen=True, slots=True)
class CalibrationPlan:
    """What is visited, and how."""

    max_tokens: int = 128  # canvas of a prompt that is given as a text
    batch_size: int = 8
    seed: int = 0
    own_round: bool = True  # visit the states of the fitted rule, too, and fit again
    recipe: Recipe = Recipe()  # noqa: RUF009  # frozen


def calibrate(
    model: Model,
    texts: Sequence[str | Prompt],
    plan: CalibrationPlan | None = None,
    *,
    folder: Path | None = None,
    watch: Watch = lambda: None,
) -> FittedRule:
    """Fit a rule on prompts; no answers are needed.

    ``folder`` keeps the visits, so that an interrupted call continues. ``watch`` is called after every decoded row.
    """
    plan = plan or CalibrationPlan()
    prompts = [Prompt(text, plan.max_tokens) if isinstance(text, str) else text for text in texts]
    if len(prompts) < LEAST:
        raise InputError(f"A rule needs at least {LEAST} prompts, got {len(prompts)}.", param="prompts")
    if folder is not None:
        claim(folder, model, prompts, plan)
    rounds = visit_rounds(model, prompts, plan, folder, watch)
    rule = score_rule(fit_rule(model, prompts, rounds, plan.recipe), rounds)
    return with_costs(model, prompts, rule, plan.batch_size, watch)


def visit_rounds(
    model: Model,
    prompts: Sequence[Prompt],
    plan: CalibrationPlan,
    folder: Path | None = None,
    watch: Watch = lambda: None,
) -> list[Visited]:
    """The visits of the policies, and then those of the rule that was fitted on them."""
    requests = [request_for(model, prompt) for prompt in prompts]
    rounds = [visit_round(model, requests, [strategy(text) for text in POLICIES], plan, 0, folder, watch)]
    if plan.own_round:
        rule = fit_rule(model, prompts, rounds, plan.recipe)
        own = [Calibrated(fitted=rule, budget=budget) for budget in OWN_BUDGETS]
        rounds.append(visit_round(model, requests, own, plan, 1, folder, watch))
    return rounds


def fit_rule(model: Model, prompts: Sequence[Prompt], rounds: Sequence[Visited], recipe: Recipe) -> FittedRule:
    """A rule fitted on all visits of some rounds, with what it was fitted on."""
    whole = {name: join([part[name] for part in rounds]) for name in rounds[0]}
    return describe_fit(fit(**whole, vocabulary=model.net.head_weight.shape[0], recipe=recipe), model, prompts)


def visit_round(
    model: Model,
    requests: Sequence[Request],
    policies: Sequence[Strategy],
    plan: CalibrationPlan,
    number: int,
    folder: Path | None,
    watch: Watch,
) -> Visited:
    """The visits of one round, chunk by chunk; chunks that the folder has are read."""
    parts = []
    for start in range(0, len(requests), CHUNK):
        kept = None if folder is None else folder / f"round{number}-{start}.safetensors"
        if kept is not None and kept.exists():
            parts.append(load_file(kept))
            continue
        seed = plan.seed * 1000 + 100 * number + start // CHUNK
        some = requests[start : start + CHUNK]
        rows = as_rows(list(visit(model, some, policies, rows=plan.batch_size, seed=seed, watch=watch)))
        rows["prompt"] += start
        if kept is not None:
            save_file(rows, kept)
        parts.append(rows)
    return {name: join([part[name] for part in parts]) for name in parts[0]}


def join(parts: Sequence[Tensor]) -> Tensor:
    """Tensors of several chunks, one behind the other."""
    import torch

    return torch.cat(list(parts))


def claim(folder: Path, model: Model, prompts: Sequence[Prompt], plan: CalibrationPlan) -> None:
    """The folder belongs to this very work, or is empty."""
    text = json.dumps([fingerprint(model), plan.seed, *map(astuple, prompts)])
    mine = hashlib.sha256(text.encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "work.txt"
    if mark.exists() and mark.read_text() != mine:
        raise InputError(f"{folder} holds another calibration.", hint="Name another --work folder.", param="work")
    mark.write_text(mine)


def describe_fit(rule: FittedRule, model: Model, prompts: Sequence[Prompt]) -> FittedRule:
    """The rule with what it was fitted on."""
    fitted_on = {
        "model": model.name,
        "fingerprint": fingerprint(model),
        "dtype": str(model.dtype).removeprefix("torch."),
        "prompts": len(prompts),
        "end": f"threshold:tau={CAREFUL}",
    }
    return replace(rule, fitted_on=fitted_on)


def score_rule(rule: FittedRule, rounds: Sequence[Visited]) -> FittedRule:
    """The rule with its reliability on held-out prompts."""
    whole = {name: join([part[name] for part in rounds]) for name in rounds[0]}
    held, stood = held_out(whole["prompt"]), whole["stood"]
    stands, harms = rule.chances(whole["features"][held][None], whole["proposals"][held][None])
    scores = {"positions": len(stood), "held_out": int(held.sum()), "reliability": reliability(stands[0], stood[held])}
    wrong = ~stood[held]
    if wrong.any():
        scores["harm"] = reliability(harms[0, wrong], whole["harmful"][held][wrong])
    return replace(rule, scores=scores)
