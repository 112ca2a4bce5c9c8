"""What became of a row: its text up to a stop string, its tokens, its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starr.events import Event
from starr.server.job import Job, Ticket
from starr.server.stops import cut_at
from starr.strategy.registry import text_form
from starr.trace import Stats, Trace

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished row. ``tokens`` are those whose first byte is in the text; ``made`` of them were decoded."""

    text: str
    tokens: list[int]
    logprobs: list[float]
    made: int
    finish_reason: str
    stats: Stats
    trace: Trace | None


def outcome_of(ticket: Ticket, model: Model) -> Outcome:
    """The result of a row that is over: done, stopped by a string, or ended early with what is settled."""
    event = ticket.event
    assert event is not None
    end = cut_at(event.text, ticket.job.stops)
    text = event.text[:end]
    places = settled_places(event, model)
    count = len(places) if end is None and event.done else within(tokens_at(event, places), text, model)
    result = event.generation
    reason = "stop" if end is not None else "length" if result is None else result.finish_reason
    return Outcome(
        text=text,
        tokens=tokens_at(event, places[:count]),
        logprobs=logprobs_at(event, places[:count]),
        made=event.final.text.made(places[:count]),
        finish_reason=reason,
        stats=event.stats if result is None else result.stats,
        trace=None if result is None else result.trace,
    )


def settled_places(event: Event, model: Model) -> list[int]:
    """Canvas positions whose tokens make the settled text."""
    kept = event.final.text.kept(model.spec.eos_ids, event.row.request.ends)
    return [place for place in kept if place < event.settled]


def tokens_at(event: Event, places: list[int]) -> list[int]:
    return [event.tokens[place] for place in places]


def logprobs_at(event: Event, places: list[int]) -> list[float]:
    """Log confidence of each token at the step that committed it; 0 for template text, which nobody doubted."""
    final = event.final
    return [0.0 if final.text.frozen[p] else math.log(max(final.committed_with[p], 1e-6)) for p in places]


def within(tokens: list[int], text: str, model: Model) -> int:
    """How many leading tokens begin inside the text, counted in bytes."""
    room, count = len(text.encode()), 0
    for token in tokens:
        if room <= 0:
            break
        room -= 0 if token in model.tokenizer.special_ids else len(model.tokenizer.bytes_of(token))
        count += 1
    return count


def usage_of(job: Job, outcomes: list[Outcome]) -> dict[str, int]:
    """Tokens are counted up to the end of the text, never the padded canvas; a prompt counts once, whatever n."""
    prompts = {id(ticket.request.tokens): ticket.request.start for ticket in job.tickets}
    prompt, made = sum(prompts.values()), sum(outcome.made for outcome in outcomes)
    forwards = sum(outcome.stats.forwards for outcome in outcomes)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": made,
        "total_tokens": prompt + made,
        "forwards": forwards,
    }


def figures_of(job: Job, outcomes: list[Outcome]) -> dict[str, Any]:
    """The field ``starr`` of a response: what decoding cost, over all its choices."""
    request = job.tickets[0].request
    forwards = sum(outcome.stats.forwards for outcome in outcomes)
    tokens = sum(outcome.made for outcome in outcomes)
    return {
        "forwards": forwards,
        "positions": sum(outcome.stats.positions for outcome in outcomes),
        "tokens_per_forward": round(tokens / max(forwards, 1), 4),
        "revocations": sum(outcome.stats.revocations for outcome in outcomes),
        "strategy": text_form(request.strategy),
        "cache": text_form(request.cache),
        "seed": request.seed,
    }
