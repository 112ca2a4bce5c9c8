"""Fit the block filter of ``learn2pd``: replay careful texts as an oracle would write them, and see what it knew when.

As the paper does: a careful run gives each prompt's final text. Then the same canvas is decoded once more, block by
block; each step commits exactly the proposals that are final already. Every step is an example: the confidences of
the open block, and which of its proposals are final. A step in which none is final fills the block as it ends.
Letters: S steps, N positions of a block, H hidden units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.api import build_request
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.fitted import fingerprint
from starr.decode.strategies.ids import is_one_of
from starr.decode.strategies.learn2pd import block_confidence, open_block
from starr.decode.strategies.learn2pd.filter import BlockFilter
from starr.decode.view import Carry, Decision, StepView, commits
from starr.errors import InputError
from starr.fit.calibrate.fit import held_out
from starr.fit.calibrate.sound import until_end
from starr.fit.calibrate.visit import CAREFUL, Watch, last_events
from starr.options import Options

if TYPE_CHECKING:
    from starr.fit.calibrate.prompts import Prompt
    from starr.model.load import Model

LEAST = 20  # prompts
TAU = 0.96  # what scores are told for


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """How a filter is fitted; ``end`` writes the texts that it learns from."""

    block: int = 32
    batch_size: int = 8
    end: str = f"threshold:tau={CAREFUL}"
    rate: float = 0.003
    epochs: int = 400
    patience: int = 20
    seed: int = 0


@dataclass(frozen=True, slots=True)
class OracleSteps:
    """What the replay of texts showed."""

    confidence: Tensor  # (S, N) float32: 1 where there is no mask
    final: Tensor  # (S, N) bool: the proposal is the final token, or there is no mask
    masked: Tensor  # (S, N) bool
    prompt: Tensor  # (S,) int64


@dataclass(frozen=True)
class Replay(Strategy):
    """Commits what is final already, block by block, and records every step."""

    name: ClassVar[str] = "replay"
    paper: ClassVar[str] = "-"
    scope: ClassVar[str] = "ahead"
    text: tuple[int, ...]
    ends: tuple[int, ...]
    block: int
    prompt: int  # makes every row a group of its own
    found: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None: ...

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        text = torch.tensor([self.text], device=view.tokens.device)
        text = F.pad(text, (0, view.tokens.shape[1] - text.shape[1]))
        known = (view.proposal == text) | (is_one_of(text, self.ends) & is_one_of(view.proposal, self.ends))
        open_, place = open_block(view.masked, self.block)
        at = torch.where(open_, place, self.block)
        blank = torch.zeros((1, self.block + 1), dtype=torch.bool, device=text.device)
        masked = blank.scatter(1, at, open_)[:, : self.block]
        final = (~blank).scatter(1, at, known | ~open_)[:, : self.block]
        confidence = block_confidence(view, place, open_, self.block)
        self.found.append((confidence.cpu(), final.cpu(), masked.cpu()))
        chosen = open_ & known
        chosen = torch.where(chosen.any(dim=1, keepdim=True), chosen, open_)
        return Decision(commits(chosen), tokens=text), carry


def fit_filter(
    model: Model, prompts: Sequence[Prompt], plan: FilterPlan | None = None, watch: Watch = lambda: None
) -> BlockFilter:
    """Fit a filter on prompts; no answers are needed. ``watch`` is called after each of the two runs of a prompt."""
    plan = plan or FilterPlan()
    if len(prompts) < LEAST:
        raise InputError(f"A filter needs at least {LEAST} prompts, got {len(prompts)}.", param="prompts")
    seen = replay_texts(model, prompts, plan, watch)
    held = held_out(seen.prompt)
    found = descend(seen.confidence[~held], seen.final[~held], seen.confidence[held], seen.final[held], plan)
    fitted_on = {
        "model": model.name,
        "fingerprint": fingerprint(model),
        "dtype": str(model.dtype).removeprefix("torch."),
        "prompts": len(prompts),
        "end": plan.end,
    }
    scores = filter_scores(found, seen, held) | {"steps": len(seen.prompt)}
    return replace(found, fitted_on=fitted_on, scores=scores)


def replay_texts(model: Model, prompts: Sequence[Prompt], plan: FilterPlan, watch: Watch) -> OracleSteps:
    """Careful texts, and their replays."""
    requests = [build_request(model, p.text, Options(max_tokens=p.max_tokens, strategy=plan.end)) for p in prompts]
    ends = model.spec.eos_ids
    careful = last_events(model, requests, plan.batch_size, watch)
    replays = [Replay(until_end(event.tokens, ends), ends, plan.block, n) for n, event in enumerate(careful)]
    again = [request.change(strategy=replay) for request, replay in zip(requests, replays, strict=True)]
    last_events(model, again, plan.batch_size, watch)
    confidence, final, masked = (
        torch.cat([step[part] for replay in replays for step in replay.found]) for part in range(3)
    )
    prompt = torch.tensor([replay.prompt for replay in replays for _ in replay.found])
    return OracleSteps(confidence, final, masked, prompt)


def descend(x: Tensor, y: Tensor, held_x: Tensor, held_y: Tensor, plan: FilterPlan) -> BlockFilter:
    """The weights with the lowest held-out loss; logistic loss over all positions of a block."""
    torch.manual_seed(plan.seed)
    size = plan.block
    scales = ((size, size), (size,), (size, size), (size,))
    weights = [(torch.randn(shape) * (len(shape) - 1) / size**0.5).requires_grad_() for shape in scales]
    adam = torch.optim.AdamW(weights, lr=plan.rate)
    best, lowest, waited = BlockFilter(*[w.detach().clone() for w in weights]), float("inf"), 0
    for _ in range(plan.epochs):
        for part in torch.split(torch.randperm(len(x)), 512):
            loss = F.binary_cross_entropy_with_logits(BlockFilter(*weights).logits(x[part]), y[part].float())
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        now = BlockFilter(*[w.detach().clone() for w in weights])
        score = float(F.binary_cross_entropy_with_logits(now.logits(held_x), held_y.float()))
        if score < lowest - 1e-5:
            best, lowest, waited = now, score, 0
        else:
            waited += 1
        if waited >= plan.patience:
            break
    return best


def filter_scores(found: BlockFilter, seen: OracleSteps, held: Tensor) -> dict[str, float | int]:
    """On held-out steps: of the masks with P > TAU, how many are final, and how many of all final ones they are."""
    masked, final = seen.masked[held], seen.final[held] & seen.masked[held]
    said = (found.probability(seen.confidence[held]) > TAU) & masked
    right = (said & final).sum()
    return {
        "held_out": int(masked.sum()),
        "tau": TAU,
        "precision": round(float(right / said.sum().clamp_min(1)), 4),
        "recall": round(float(right / final.sum().clamp_min(1)), 4),
    }
