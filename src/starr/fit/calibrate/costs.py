"""What a rule's budgets cost, and what a calibration will take: measured on the model, without answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from starr.api import strategy
from starr.decode.strategies.calibrated import Calibrated
from starr.fit.calibrate.fit import held_out
from starr.fit.calibrate.prompts import Prompt, request_for
from starr.fit.calibrate.sound import Written, implausible, until_end
from starr.fit.calibrate.visit import CAREFUL, POLICIES, ROUNDS, Watch, last_events, visit

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.decode.strategies.base import Strategy
    from starr.decode.strategies.calibrated.rule import FittedRule
    from starr.model.load import Model

COSTED = 400  # held-out prompts that budgets are measured on
BUDGETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
MOST_OWN = 0.3  # the model does not see all that larger ones break: two choices of one step that exclude each other
BASELINE = "threshold:tau=0.9"
SLACK = 0.005  # share of texts by which the rule's own budget may be less sound than BASELINE


def estimate(model: Model, prompts: Sequence[Prompt], rows: int) -> float:
    """About how many seconds a calibration takes, from the visits and the careful run of a few prompts."""
    some = [request_for(model, prompt) for prompt in prompts[: 2 * rows]]
    begin = perf_counter()
    list(visit(model, some, [strategy(text) for text in POLICIES], rows=rows, seed=0))
    visited = perf_counter()
    texts_of(model, some, strategy(f"threshold:tau={CAREFUL}"), rows)
    written = perf_counter()
    texts = runs_of(len(prompts)) - ROUNDS * len(prompts)
    return (ROUNDS * len(prompts) * (visited - begin) + texts * (written - visited)) / len(some)


def runs_of(prompts: int) -> int:
    """How many rows a calibration decodes: visits, and on held-out ones the careful run, BASELINE and each budget."""
    return ROUNDS * prompts + (2 + len(BUDGETS)) * len(costed(prompts))


def costed(prompts: int) -> list[int]:
    """The places of the held-out prompts that budgets are measured on."""
    places: list[int] = held_out(torch.arange(prompts)).nonzero()[:COSTED, 0].tolist()
    return places


def with_costs(
    model: Model, prompts: Sequence[Prompt], rule: FittedRule, rows: int, watch: Watch = lambda: None
) -> FittedRule:
    """The rule with what its budgets cost, and BASELINE beside them: forwards, and how many texts are sound.

    Measured on held-out prompts, without answers: a text is sound if it has no implausible token where it differs from
    what ``threshold`` 0.95 writes. The rule's own budget is the largest up to MOST_OWN that is as sound as BASELINE, up
    to SLACK; the smallest, if none is.
    """
    held = [request_for(model, prompts[place]) for place in costed(len(prompts))]
    careful, _ = texts_of(model, held, strategy(f"threshold:tau={CAREFUL}"), rows, watch)

    def row(chosen: Strategy, name: str) -> dict[str, Any]:
        texts, forwards = texts_of(model, held, chosen, rows, watch)
        written = [
            Written(request.tokens[: request.start], sure, text)
            for request, sure, text in zip(held, careful, texts, strict=True)
        ]
        sound = sum(not bad for bad in implausible(model, written)) / len(held)
        return {"run": name, "sound": round(sound, 4), "forwards": round(forwards, 3)}

    baseline = row(strategy(BASELINE), BASELINE)
    costs = [row(Calibrated(fitted=rule, budget=budget), str(budget)) for budget in BUDGETS]
    enough = baseline["sound"] - SLACK
    sound = [budget for budget, found in zip(BUDGETS, costs, strict=True) if found["sound"] >= enough]
    own = max((budget for budget in sound if budget <= MOST_OWN), default=BUDGETS[0])
    return replace(rule, budget=own, scores=rule.scores | {"budgets": [baseline, *costs]})


def texts_of(
    model: Model, requests: Sequence[Request], chosen: Strategy, rows: int, watch: Watch = lambda: None
) -> tuple[list[tuple[int, ...]], float]:
    """The canvas of every request when a strategy has written it, and mean forwards."""
    bound = chosen.bind(model)
    events = last_events(model, [request.change(strategy=bound) for request in requests], rows, watch)
    texts = [until_end(event.tokens, model.spec.eos_ids) for event in events]
    return texts, sum(event.stats.forwards for event in events) / len(events)
