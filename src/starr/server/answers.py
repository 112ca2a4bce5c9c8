"""The objects that clients get: whole answers, chunks of a stream, errors. Dictionaries, as OpenAI spells them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.errors import StarrError
from starr.server.job import Job
from starr.server.outcome import Outcome, figures_of, usage_of

if TYPE_CHECKING:
    from starr.model.load import Model

TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 503: "service_unavailable_error"}


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of answer: a chat, a completion or an infill."""

    model: Model
    kind: str  # "chat.completion", "text_completion" or "infill"
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def chat(self) -> bool:
        return self.kind == "chat.completion"

    def head(self, object: str) -> dict[str, Any]:
        prefix = {"chat.completion": "chatcmpl", "text_completion": "cmpl"}.get(self.kind, "infill")
        return {
            "id": f"{prefix}-{self.id}",
            "object": object,
            "created": self.created,
            "model": self.model.name,
            "system_fingerprint": fingerprint(self.model),
        }

    def whole(self, job: Job, outcomes: list[Outcome], logprobs: bool) -> dict[str, Any]:
        """The answer of a request that is not streamed."""
        chosen = [self.choice(index, outcome, logprobs) for index, outcome in enumerate(outcomes)]
        tail = {"usage": usage_of(job, outcomes), "starr": figures_of(job, outcomes)}
        return self.head(self.kind) | {"choices": chosen} | tail

    def choice(self, index: int, outcome: Outcome, logprobs: bool) -> dict[str, Any]:
        message = {"role": "assistant", "content": outcome.text, "refusal": None}
        said = {"message": message} if self.chat else {"text": outcome.text}
        found = self.logprobs(outcome.tokens, outcome.logprobs, 0) if logprobs else None
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
        return "chat.completion.chunk" if self.chat else self.kind

    def logprobs(self, tokens: list[int], values: list[float], offset: int) -> dict[str, Any]:
        """Log confidence of each token at the step that committed it; ``offset`` characters came before."""
        known = list(zip(tokens, values, strict=True))
        pieces = [self.model.tokenizer.piece(token) for token in tokens]
        if not self.chat:
            offsets = [offset + sum(map(len, pieces[:place])) for place in range(len(pieces))]
            tops = [{piece: value} for piece, value in zip(pieces, values, strict=True)]
            return {"tokens": pieces, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}
        content = [
            {"token": piece, "logprob": value, "bytes": list(self.model.tokenizer.bytes_of(token))}
            for piece, (token, value) in zip(pieces, known, strict=True)
        ]
        return {"content": [entry | {"top_logprobs": [entry]} for entry in content], "refusal": None}


def fingerprint(model: Model) -> str:
    """Same fingerprint, seed and options: same tokens."""
    from starr import __version__

    return f"starr-{__version__}-{str(model.dtype).removeprefix('torch.')}"


def error_body(error: StarrError) -> dict[str, Any]:
    return error_object(str(error), error.status, error.param)


def error_object(message: str, status: int, param: str | None = None) -> dict[str, Any]:
    """An error as the official client reads it."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    codes = {401: "invalid_api_key", 404: "model_not_found" if param == "model" else "not_found"}
    codes |= {408: "timeout", 413: "context_length_exceeded", 429: "queue_full"}
    return {"error": {"message": message, "type": kind, "param": param, "code": codes.get(status)}}
