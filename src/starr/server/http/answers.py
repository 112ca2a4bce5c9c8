"""Answers as OpenAI's clients read them: finished rows in, JSON objects and lines of a stream out."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.api import choose
from starr.decode.prompts.tools import Call, split_answer
from starr.decode.text import within
from starr.named import text_form
from starr.server.http.read import Asked, check_size

if TYPE_CHECKING:
    from starr.decode.result import Event
    from starr.decode.trace import Trace
    from starr.model.load import Model
    from starr.server.queue.job import Job, Ticket

DONE = "data: [DONE]\n\n"
PREFIXES = {"chat.completion": "chatcmpl", "text_completion": "cmpl", "infill": "infill"}


@dataclass(frozen=True, slots=True)
class Chance:
    """A token, or a whole choice: its log probability, and the likeliest ones in its place."""

    text: str
    bytes: bytes
    logprob: float
    likely: tuple[Chance, ...] = ()

    def entry(self) -> dict[str, Any]:
        """As a chat shows it."""
        return {"token": self.text, "logprob": self.logprob, "bytes": list(self.bytes)}


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A row that is over, and what it cost. ``made`` of the tokens in its text were decoded; template text is not."""

    text: str  # "" where the answer is a call
    call: Call | None
    finish_reason: str
    made: int
    forwards: int
    positions: int
    revocations: int = 0
    chances: list[Chance] | None = None  # of its tokens, where logprobs are wanted
    trace: Trace | None = None
    note: str = ""  # why the answer may be nonsense


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """The answer to a request: one choice for each row."""

    rows: list[FinishedRow]
    prompt_tokens: int  # each prompt counts once, whatever n
    origin: dict[str, Any]  # strategy, cache and seed

    @property
    def usage(self) -> dict[str, int]:
        """Tokens are counted up to the end of the text, never the padded canvas."""
        made, forwards = sum(row.made for row in self.rows), sum(row.forwards for row in self.rows)
        total = self.prompt_tokens + made
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": made,
            "total_tokens": total,
            "forwards": forwards,
        }

    @property
    def figures(self) -> dict[str, Any]:
        """The field ``starr``: what decoding cost, over all choices."""
        made, forwards = sum(row.made for row in self.rows), sum(row.forwards for row in self.rows)
        return {
            "forwards": forwards,
            "positions": sum(row.positions for row in self.rows),
            "tokens_per_forward": round(made / max(forwards, 1), 4),
            "revocations": sum(row.revocations for row in self.rows),
            **({"note": note} if (note := next((row.note for row in self.rows if row.note), "")) else {}),
        } | self.origin


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a streamed answer; ``text`` None adds nothing. ``offset`` characters came before.

    The first piece of a call has its name and no arguments, the others have some more of them.
    """

    index: int
    text: str | None = None
    call: Call | None = None
    chances: list[Chance] | None = None
    offset: int = 0
    finish_reason: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


def finish_row(ticket: Ticket, model: Model, likely: int | None = None) -> FinishedRow:
    """The result of a row that is over: done, or ended early with what is settled."""
    event = ticket.event
    assert event is not None
    places, stats, result = event.places, event.stats, event.generation
    if result is None:
        places = places[: within([event.tokens[place] for place in places], event.text, model)]
    text, call = split_answer(event.text, ticket.request.options.toolbox)
    ended = "length" if result is None else result.finish_reason
    likely = None if call is not None else likely
    return FinishedRow(
        text=text,
        call=call,
        finish_reason="tool_calls" if call is not None and call.whole else ended,
        made=event.snapshot.text.made(places),
        forwards=stats.forwards,
        positions=stats.positions,
        revocations=stats.revocations,
        chances=None if likely is None else read_chances(event, places, likely, model),
        trace=None if result is None else result.trace,
        note="" if model.known is None else model.known.remark(model.name, ticket.request.prompt),
    )


def read_chances(event: Event, places: list[int], likely: int, model: Model) -> list[Chance]:
    """What the model thought of each token, and of ``likely`` others, at the step that committed it."""
    shot, tokenizer = event.snapshot, model.tokenizer

    def chance(token: int, log: float, others: tuple[Chance, ...] = ()) -> Chance:
        return Chance(tokenizer.piece(token), tokenizer.bytes_of(token), log, others)

    found = []
    for place in places:
        token, log = event.tokens[place], shot.logprob(place)
        listed = shot.likely(place)[:likely] if likely else []
        others = tuple(chance(other, log if other == token else value) for other, value in listed)
        found.append(chance(token, log, others))
    return found


def answer_job(job: Job, rows: list[FinishedRow]) -> FinishedJob:
    """The answer of a job whose rows are over."""
    prompts = {id(ticket.request.tokens): ticket.request.start for ticket in job.tickets}
    request = job.tickets[0].request
    origin = {"strategy": text_form(request.strategy), "cache": text_form(request.cache), "seed": request.options.seed}
    return FinishedJob(rows, sum(prompts.values()), origin)


def answer_choice(asked: Asked, model: Model) -> FinishedJob:
    """``choice`` with ``logprobs``: one forward, and every choice with its probability, as if it were one token."""
    check_size(asked.prompts[0], model)
    found = choose(model, asked.prompts[0], asked.options["choices"], chat=asked.options["chat"])
    ranked = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    tops = tuple(Chance(text, text.encode(), math.log(max(share, 1e-30))) for text, share in ranked)
    chances = [Chance(tops[0].text, tops[0].bytes, tops[0].logprob, tops)]
    made = len(model.tokenizer.encode(found.text))
    row = FinishedRow(found.text, None, "stop", made, found.forwards, found.positions, chances=chances)
    return FinishedJob([row], found.prompt_tokens, {"strategy": None, "cache": None, "seed": None})


@dataclass(slots=True)
class AnswerWriter:
    """Writes one answer: a chat, a completion or an infill, whole or as a stream."""

    model: Model
    kind: str  # "chat.completion", "text_completion" or "infill"
    include_usage: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def chat(self) -> bool:
        """Whether it is a chat."""
        return self.kind == "chat.completion"

    def head(self, object: str) -> dict[str, Any]:
        """The fields that begin every object."""
        head = {"id": f"{PREFIXES[self.kind]}-{self.id}", "object": object, "created": self.created}
        return head | {"model": self.model.name, "system_fingerprint": write_fingerprint(self.model)}

    def whole(self, answer: FinishedJob) -> dict[str, Any]:
        """The answer to a request that is not streamed."""
        choices = []
        for index, row in enumerate(answer.rows):
            called = {} if row.call is None else {"content": None, "tool_calls": [self.call(index, row.call)]}
            message = {"role": "assistant", "content": row.text, "refusal": None} | called
            said = {"message": message} if self.chat else {"text": row.text}
            choice = self.choice(Piece(index, chances=row.chances, finish_reason=row.finish_reason), said)
            choices.append(choice if row.trace is None else choice | {"trace": row.trace.to_dict()})
        return self.head(self.kind) | {"choices": choices, "usage": answer.usage, "starr": answer.figures}

    def open(self, rows: int) -> Iterator[str]:
        """The lines that begin a stream."""
        for index in range(rows if self.chat else 0):
            yield self.line([self.choice(Piece(index), {"delta": {"role": "assistant", "content": ""}})])

    def tell(self, piece: Piece) -> Iterator[str]:
        """The lines of one piece."""
        delta: dict[str, Any] = {} if piece.text is None else {"content": piece.text}
        if piece.call is not None:
            delta = {"tool_calls": [{"index": 0} | self.call(piece.index, piece.call)]}
        choice = self.choice(piece, {"delta": delta} if self.chat else {"text": piece.text or ""})
        yield self.line([choice], **piece.more)

    def call(self, index: int, call: Call) -> dict[str, Any]:
        """A call, or more arguments of one that has no name."""
        if not call.name:
            return {"function": {"arguments": call.arguments}}
        head = {"id": f"call_{self.id[:24]}{index}", "type": "function"}
        return head | {"function": {"name": call.name, "arguments": call.arguments}}

    def close(self, answer: FinishedJob) -> Iterator[str]:
        """The lines that end a stream."""
        if self.include_usage:
            yield self.line([], usage=answer.usage)
        yield DONE

    def fail(self, error: dict[str, Any]) -> str:
        """The line that ends a stream with an error, as the official client expects it."""
        return write_line(error)

    def choice(self, piece: Piece, said: dict[str, Any]) -> dict[str, Any]:
        """One choice of an answer or a chunk."""
        found = None if piece.chances is None else self.logprobs(piece.chances, piece.offset)
        return {"index": piece.index} | said | {"logprobs": found, "finish_reason": piece.finish_reason}

    def line(self, choices: list[dict[str, Any]], **more: Any) -> str:
        """A chunk as one event."""
        usage = {"usage": None} if self.include_usage else {}
        kind = "chat.completion.chunk" if self.chat else self.kind
        return write_line(self.head(kind) | {"choices": choices} | usage | more)

    def logprobs(self, chances: list[Chance], offset: int) -> dict[str, Any]:
        """Log confidence of each token at the step that committed it, and of others; ``offset`` characters precede."""
        if self.chat:
            rows = [c.entry() | {"top_logprobs": [other.entry() for other in c.likely]} for c in chances]
            return {"content": rows, "refusal": None}
        offsets = []
        for chance in chances:
            offsets.append(offset)
            offset += len(chance.text)
        tops = [{other.text: other.logprob for other in c.likely} | {c.text: c.logprob} for c in chances]
        found = {"tokens": [c.text for c in chances], "token_logprobs": [c.logprob for c in chances]}
        return found | {"top_logprobs": tops, "text_offset": offsets}


def dump(value: Any, depth: int = 5) -> Iterator[str]:
    """JSON in pieces, down to the steps of a trace: other threads run between them."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        yield json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return
    keyed = isinstance(value, dict)
    between = "{" if keyed else "["
    for item in value:
        yield between + (json.dumps(item, ensure_ascii=False) + ":" if keyed else "")
        yield from dump(value[item] if keyed else item, depth - 1)
        between = ","
    yield "}" if keyed else "]"


def write_line(body: dict[str, Any]) -> str:
    """An object as one event of a stream."""
    return f"data: {json.dumps(body, ensure_ascii=False, allow_nan=False)}\n\n"


def write_fingerprint(model: Model) -> str:
    """Same fingerprint, seed and options: same tokens."""
    from starr import __version__

    return f"starr-{__version__}-{str(model.dtype).removeprefix('torch.')}"
