"""``choice`` with ``logprobs``: one forward, and every choice with its probability, in OpenAI's fields.

The whole choice stands where a token stands: its log-probability is that of the choice among all of them, and
``top_logprobs`` lists them all.
"""

from __future__ import annotations

import math
from typing import Any

from starr.api import choose
from starr.decode.choose.answers import Choice
from starr.decode.choose.blocks import block_by_block
from starr.decode.choose.questions import questions_behind
from starr.errors import InputError
from starr.model.load import Model
from starr.server.http.answers import AnswerShape
from starr.server.http.formats import form_of
from starr.server.http.parse import check_model, prompts_of, wanted_logprobs
from starr.server.http.protocol import ChatBody, Decoding, InfillBody


def decides(body: Decoding) -> bool:
    """Whether a body asks for choices with probabilities."""
    return not isinstance(body, InfillBody) and "choices" in form_of(body) and wanted_logprobs(body) is not None


def decided(body: Decoding, model: Model, shape: AnswerShape) -> dict[str, Any]:
    """The whole answer to such a body."""
    check_model(body.model, model)
    prompts = prompts_of(body)
    if body.stream or (body.n or 1) > 1 or len(prompts) > 1:
        raise InputError("choice with logprobs takes one prompt, n 1 and no stream.", param="choice")
    found = choose(model, prompts[0], form_of(body)["choices"], chat=isinstance(body, ChatBody))
    said = (
        {"message": {"role": "assistant", "content": found.text, "refusal": None}}
        if shape.chat
        else {"text": found.text}
    )
    choice = {"index": 0} | said | {"logprobs": logprobs_of(found, chat=shape.chat), "finish_reason": "stop"}
    tokens = len(model.tokenizer.encode(found.text))
    usage = {"prompt_tokens": found.prompt_tokens, "completion_tokens": tokens}
    usage |= {"total_tokens": sum(usage.values()), "forwards": found.forwards}
    return shape.head(shape.kind) | {"choices": [choice], "usage": usage, "starr": figures_of(found, tokens, model)}


def figures_of(found: Choice, tokens: int, model: Model) -> dict[str, Any]:
    """What reading the choices cost; no strategy, cache or seed had a part in it."""
    return {
        "forwards": found.forwards,
        "positions": positions_of(found, model),
        "tokens_per_forward": round(tokens / found.forwards, 4),
        "revocations": 0,
        "strategy": None,
        "cache": None,
        "seed": None,
    }


def positions_of(found: Choice, model: Model) -> int:
    """Positions of all rows that were read. The length of the prompt decides, whatever it says."""
    prompt = [0] * found.prompt_tokens
    rows, asked = questions_behind(model, prompt, list(found.probabilities))
    if model.spec.block_length is not None:
        rows, _ = block_by_block(model, rows, asked)
    return sum(map(len, rows))


def logprobs_of(found: Choice, *, chat: bool) -> dict[str, Any]:
    """Choices as tokens, the most probable first."""
    ranked = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    tops = [(text, math.log(max(share, 1e-30))) for text, share in ranked]
    if not chat:
        best, share = tops[0]
        return {"tokens": [best], "token_logprobs": [share], "top_logprobs": [dict(tops)], "text_offset": [0]}
    entries = [{"token": text, "logprob": share, "bytes": list(text.encode())} for text, share in tops]
    return {"content": [entries[0] | {"top_logprobs": entries}], "refusal": None}
