"""Whether a canvas can hold an answer at all; asked before the first forward."""

from __future__ import annotations

from starr.decode.extras.constraints.reach import GOES_ON, MASK
from starr.decode.request import Request
from starr.errors import InputError

MOST_WORK = 1 << 27  # masks times moves, which the best path of a last step looks at: about half a second


def symbols_of(request: Request) -> list[int]:
    """The row's canvas in the automaton's words, as far as it belongs to the result."""
    assert request.constraint is not None
    class_of = request.constraint.automaton.class_of
    never = request.options.eos == "never"
    parts = zip(request.tokens, request.masked, request.endless, strict=True)
    whole = [(GOES_ON if never or endless else MASK) if masked else int(class_of[t]) for t, masked, endless in parts]
    return whole[request.start : len(whole) - request.surplus]


def check_canvas(request: Request) -> None:
    """Raise unless the canvas can be filled with an answer that satisfies the constraint."""
    constraint = request.constraint
    assert constraint is not None
    name = constraint.wanted.kind
    if request.strategy.grows():
        raise InputError(f"{request.strategy.name} cannot be used with {name}: it moves positions.", param="strategy")
    dropping = [rule.name for rule in request.rules if rule.drops()]
    if dropping:
        raise InputError(
            f"{dropping[0]} cannot be used with {name}: it drops masks from the text.",
            hint="Let it fill them (ice:fill=true).",
            param=dropping[0],
        )
    symbols = symbols_of(request)
    masks, moves = sum(symbol < 0 for symbol in symbols), constraint.automaton.live
    if masks * moves > MOST_WORK:
        raise InputError(
            f"{name} is too large for {masks} masks: it has {moves} moves, at most {MOST_WORK // masks} are allowed.",
            hint="Lower max_tokens, or ask for less at once.",
            param=name,
        )
    if constraint.walk(symbols).feasible:
        return
    shortest, free = constraint.automaton.shortest, all(symbol < 0 for symbol in symbols)
    if free and shortest is not None and shortest > len(symbols):
        raise InputError(
            f"The canvas is too short: {name} needs at least {shortest} tokens, max_tokens is {len(symbols)}.",
            hint="Raise max_tokens.",
            param="max_tokens",
        )
    what = f"a text of exactly {len(symbols)} tokens" if free else "the text that stands on the canvas"
    raise InputError(f"{name} cannot be satisfied by {what}.", hint="Change the holes or the constraint.", param=name)
