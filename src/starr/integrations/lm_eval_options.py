"""lm_eval's words for options in ours: ``--model_args`` and ``--gen_kwargs``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from starr.api import strategy
from starr.errors import InputError, did_you_mean
from starr.named import options_of
from starr.options import Options

LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")  # the first one given counts
NOT_OURS = ("trace", "chat", "infill")  # options of ``generate`` that mean nothing here
DEFAULT_LENGTH = 256  # lm_eval's own, where neither the task nor the user gives one


def known_options() -> list[str]:
    """Options of decoding that have a meaning here."""
    return [field.name for field in fields(Options) if field.name not in NOT_OURS]


def decoding(given: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of ``starr.generate``: ``given`` over ``base``.

    A name that ``generate`` does not take is an option of the strategy, so that ``strategy=starr,temporal_window=5``
    and ``strategy=starr:temporal_window=5`` are the same; one that the strategy does not take is refused by name.
    """
    names = known_options()
    found = dict(base) | {name: value for name, value in given.items() if name in names}
    chosen = strategy(found.get("strategy", "starr"))
    its = [option.name for option in options_of(type(chosen))]
    rest = {name: value for name, value in given.items() if name not in names}
    for name in rest:
        if name not in its:
            hint = did_you_mean(name, [*names, *its])
            raise InputError(f"{name!r} is neither an option of decoding nor of {chosen.name}.", hint=hint, param=name)
    return found | {"strategy": replace(chosen, **rest) if rest else chosen}  # type: ignore[type-var]


def of_request(gen_kwargs: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of ``generate`` for one request."""
    given = dict(gen_kwargs)
    until = given.pop("until", None) or []
    if stops := tuple(stop for stop in ([until] if isinstance(until, str) else until) if stop):
        given["stop"] = stops
    lengths = [given.pop(name) for name in LENGTHS if name in given]
    if lengths:
        given["max_tokens"] = int(lengths[0])
    sampled = given.pop("do_sample", None)
    if sampled is False:
        given["temperature"] = 0.0
    elif sampled and "temperature" not in given:
        given["temperature"] = base.get("temperature") or 1.0
    return decoding(given, base)
