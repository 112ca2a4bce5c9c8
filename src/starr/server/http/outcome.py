"""What became of a row: its text up to a stop string, its tokens, its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starr.decode.result import Event
from starr.decode.text import within
from starr.decode.trace import Stats, Trace
from starr.named import text_form
from starr.server.queue.job import Job, Ticket

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class TokenChances:
    """A token of an answer: its log confidence at the step that committed it, and the likeliest tokens of that step."""

    token: int
    logprob: float
    likely: list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A finished row. ``tokens`` are those whose first byte is in the text; ``made`` of them were decoded."""

    text: str
    tokens: list[int]
    made: int
    finish_reason: str
    stats: Stats
    trace: Trace | None
    event: Event
    places: list[int]  # of the tokens

    def chances(self, likely: int) -> list[TokenChances]:
        """What the model thought of each token, and of ``likely`` others, at the step that committed it."""
        return chances_at(self.event, self.places, likely)


def outcome_of(ticket: Ticket, model: Model) -> FinishedRow:
    """The result of a row that is over: done, or ended early with what is settled."""
    event = ticket.event
    assert event is not None
    result, places = event.generation, event.places
    if result is None:
        places = places[: within(tokens_at(event, places), event.text, model)]
    return FinishedRow(
        text=event.text,
        tokens=tokens_at(event, places),
        made=event.snapshot.text.made(places),
        finish_reason="length" if result is None else result.finish_reason,
        stats=event.stats,
        trace=None if result is None else result.trace,
        event=event,
        places=places,
    )


def tokens_at(event: Event, places: list[int]) -> list[int]:
    """The tokens at these canvas positions."""
    return [event.tokens[place] for place in places]


def chances_at(event: Event, places: list[int], likely: int) -> list[TokenChances]:
    """What the model thought of each token, and of ``likely`` others, at the step that committed it."""
    shot = event.snapshot
    return [
        TokenChances(event.tokens[at], shot.logprob(at), shot.likely(at)[:likely] if likely else []) for at in places
    ]


def usage_of(job: Job, outcomes: list[FinishedRow]) -> dict[str, int]:
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


def figures_of(job: Job, outcomes: list[FinishedRow]) -> dict[str, Any]:
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
        "seed": request.options.seed,
    }
