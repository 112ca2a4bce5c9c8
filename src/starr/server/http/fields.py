"""Fields that are not served: refused by name unless they ask for nothing, with the name that we have for them."""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Iterable
from typing import Any

from starr.errors import InputError
from starr.options import ours
from starr.server.http.bodies import Open

MOST_NAMED = 20  # ignored fields in a log line and a header
NEAR = 0.86  # how alike two names must be; min_tokens and max_tokens are less
log = logging.getLogger("starr.server")

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "background": (False,),
    "best_of": (1,),
    "context_management": ([],),
    "conversation": (),
    "ebnf": (),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none",),
    "functions": ([],),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "json_schema": (),
    "max_completion_tokens": (),
    "max_output_tokens": (),
    "max_tool_calls": (0,),
    "modalities": (["text"],),
    "moderation": (),
    "parallel_tool_calls": (False, True),
    "prediction": (),
    "presence_penalty": (0,),
    "previous_response_id": (),
    "prompt": (),
    "reasoning": ({}, {"effort": "none"}),
    "reasoning_effort": ("none",),
    "repetition_penalty": (1,),
    "store": (False,),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "truncation": ("disabled",),
    "use_beam_search": (False,),
    "verbosity": (),
    "web_search_options": (),
}
"""Fields we know and do not serve, each with the values that ask for nothing."""

NO_ORDER = "A canvas commits tokens out of order and may revoke them, so no count of earlier tokens exists."
INSTEAD = {
    "best_of": "Ask for n answers with logprobs and keep the best.",
    "echo": "The prompt is yours already: put it before the answer.",
    "frequency_penalty": NO_ORDER,
    "presence_penalty": NO_ORDER,
    "repetition_penalty": NO_ORDER,
    "conversation": "Send its messages.",
    "function_call": "That is tool_choice here.",
    "functions": "That is tools here.",
    "diffusion_visual": "That is diffusing here.",
    "guided_choice": "That is choice here.",
    "guided_json": "That is response_format here.",
    "guided_regex": "That is regex here.",
    "json_schema": "That is response_format here.",
    "max_completion_tokens": "That is max_tokens here.",
    "max_output_tokens": "That is max_tokens here.",
    "previous_response_id": "Send its messages.",
}
"""What to send in place of a field that is refused, where only a server is asked for it."""

HARMLESS = {
    *("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    *("service_tier", "add_special_tokens"),
}
"""Fields that change no answer."""


def refuse_fields(body: Open) -> list[str]:
    """Raise for a field that we cannot serve, know by another name, or that is one of ours misspelt.

    Return the others, which are ignored, as text that a log and a header can show.
    """
    ignored = []
    for name, value in body.extra_fields().items():
        hint = INSTEAD.get(name) or ours(name)
        if name in NEUTRAL:
            if drop_nulls(value) not in NEUTRAL[name]:
                raise InputError(f"{name} is not supported.", hint=hint or "Leave it out.", param=name)
        elif hint or (hint := name_near(name, type(body).model_fields)):
            raise InputError(f"There is no field {name}.", hint=hint, param=name)
        elif name not in HARMLESS:
            ignored.append(json.dumps(name)[1:41].strip('"'))
    if ignored:
        log.info("ignored fields: %s", ", ".join(sorted(ignored)[:MOST_NAMED]))
    return sorted(ignored)[:MOST_NAMED]


def name_near(name: str, known: Iterable[str]) -> str:
    """``Did you mean 'strategy'?`` for stratgy, Strategy or strategy_; "" where no field is clearly meant."""
    plain = {field.replace("_", ""): field for field in known}
    spelt = name.lower().replace("-", "").replace("_", "")
    near = difflib.get_close_matches(spelt, plain, n=1, cutoff=NEAR)
    swapped = [each for each in plain if len(each) > 3 and sorted(each) == sorted(spelt)]
    return f"Did you mean {plain[[*near, *swapped][0]]!r}?" if near or swapped else ""


def drop_nulls(value: Any) -> Any:
    """An object without the fields that are null; anything else as it is."""
    return {name: each for name, each in value.items() if each is not None} if isinstance(value, dict) else value
