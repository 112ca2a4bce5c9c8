"""The objects that clients get: whole answers, chunks of a stream. Dictionaries, as OpenAI spells them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.server.http.outcome import FinishedRow, TokenChances, figures_of, usage_of
from starr.server.queue.job import Job

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """One kind of answer: a chat, a completion or an infill."""

    model: Model
    kind: str  # "chat.completion", "text_completion" or "infill"
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def chat(self) -> bool:
        """Whether it is a chat."""
        return self.kind == "chat.completion"

    def head(self, object: str) -> dict[str, Any]:
        """The fields that begin every object."""
        prefix = {"chat.completion": "chatcmpl", "text_completion": "cmpl"}.get(self.kind, "infill")
        return {
            "id": f"{prefix}-{self.id}",
            "object": object,
            "created": self.created,
            "model": self.model.name,
            "system_fingerprint": fingerprint(self.model),
        }

    def whole(self, job: Job, outcomes: list[FinishedRow], logprobs: int | None) -> dict[str, Any]:
        """The answer of a request that is not streamed."""
        chosen = [self.choice(index, outcome, logprobs) for index, outcome in enumerate(outcomes)]
        tail = {"usage": usage_of(job, outcomes), "starr": figures_of(job, outcomes)}
        return self.head(self.kind) | {"choices": chosen} | tail

    def choice(self, index: int, outcome: FinishedRow, logprobs: int | None) -> dict[str, Any]:
        """One finished row as a choice."""
        message = {"role": "assistant", "content": outcome.text, "refusal": None}
        said = {"message": message} if self.chat else {"text": outcome.text}
        found = None if logprobs is None else self.logprobs(outcome.chances(logprobs), 0)
        body = {"index": index} | said | {"logprobs": found, "finish_reason": outcome.finish_reason}
        return body if outcome.trace is None else body | {"trace": outcome.trace.to_dict()}

    def chunk(self, index: int, text: str | None, **more: Any) -> dict[str, Any]:
        """A piece of a stream; ``text`` None is a chunk that adds nothing."""
        content = {} if text is None else {"content": text}
        role = {"role": "assistant"} if more.pop("first", False) else {}
        said: dict[str, Any] = {"delta": role | content} if self.chat else {"text": text or ""}
        choice = {"index": index} | said | {"logprobs": more.pop("logprobs", None)}
        choice["finish_reason"] = more.pop("finish_reason", None)
        return self.head(self.chunk_kind) | {"choices": [choice]} | more

    @property
    def chunk_kind(self) -> str:
        """What a piece of a stream calls itself."""
        return "chat.completion.chunk" if self.chat else self.kind

    def logprobs(self, chances: list[TokenChances], offset: int) -> dict[str, Any]:
        """Log confidence of each token at the step that committed it, and of others; ``offset`` characters precede."""
        piece = self.model.tokenizer.piece
        if self.chat:
            rows = [self.entry(c.token, c.logprob) | {"top_logprobs": self.others(c)} for c in chances]
            return {"content": rows, "refusal": None}
        pieces, values = [piece(c.token) for c in chances], [c.logprob for c in chances]
        offsets = [offset + sum(map(len, pieces[:place])) for place in range(len(pieces))]
        tops = [{piece(token): log for token, log in c.likely} | {piece(c.token): c.logprob} for c in chances]
        return {"tokens": pieces, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}

    def others(self, chances: TokenChances) -> list[dict[str, Any]]:
        """The likely tokens of a step; the one that was committed has its own value, not a rounding of it."""
        own = {chances.token: chances.logprob}
        return [self.entry(token, own.get(token, log)) for token, log in chances.likely]

    def entry(self, token: int, log: float) -> dict[str, Any]:
        """One token of a chat's log probabilities."""
        tokenizer = self.model.tokenizer
        return {"token": tokenizer.piece(token), "logprob": log, "bytes": list(tokenizer.bytes_of(token))}


def fingerprint(model: Model) -> str:
    """Same fingerprint, seed and options: same tokens."""
    from starr import __version__

    return f"starr-{__version__}-{str(model.dtype).removeprefix('torch.')}"
