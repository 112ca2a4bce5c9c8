"""Whether a model can decode a row: every rule once, before the row joins a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starr.decode.blocks import check_blocks
from starr.decode.extras import GUESTS
from starr.decode.request import Request, check_length
from starr.errors import InputError
from starr.options import check_option

if TYPE_CHECKING:
    from starr.model.load import Model


def check_request(request: Request, model: Model) -> None:
    """Raise unless the model can decode the row."""
    if request.masked[: request.start + 1] == [True]:
        raise InputError("A mask cannot come first.", hint="Give at least one token of text before it.", param="prompt")
    if request.length < 1:
        raise InputError(f"max_tokens must be at least 1, got {request.length}.", param="max_tokens")
    check_length(request.start, request.length, model.spec.max_length)
    for name in ("block_length", "max_forwards", "seed", "enforce", "max_revocations", "smoothing"):
        check_option(name, getattr(request, name))
    if request.max_forwards == 1 and request.sampling.guidance > 0:
        raise InputError("max_forwards must be at least 2 with guidance, got 1.", param="max_forwards")
    check_blocks(request)
    for guest in GUESTS:
        if guest.serves(request):
            guest.check(request)
    check_cache(request)
    for stop in request.rules:
        stop.check_request(request)


def check_cache(request: Request) -> None:
    """Refuse what a buffer of old K/V cannot serve."""
    if not request.cache.buffered:
        return
    if request.cache.block_causal and request.blocks is None:
        request.refuse_cache("every position of this model sees all others, so no K/V are final")
    if "distribution" in request.strategy.signals and request.cache.skips:
        why = f"{request.strategy.name} compares distributions, and this cache leaves some masks without one"
        request.refuse_cache(why)
    if request.candidates and request.cache.skips:
        request.refuse_cache("likely tokens were asked for, and this cache leaves some masks without a distribution")
    if request.sampling.guidance > 0:
        request.refuse_cache("guidance runs a second canvas")
