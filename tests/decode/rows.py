"""Small canvases for tests of the loop's steps."""

from __future__ import annotations

from dataclasses import replace

import torch

import starr
from starr.decode.advance import advance
from starr.decode.canvas import Canvas, new_canvas
from starr.decode.request import Request
from starr.options import ResolvedOptions, by_name
from tests.tiny import EOS, MASK

NO_IDS = torch.tensor([], dtype=torch.int64)
EOS_IDS = torch.tensor([EOS])


def request(pattern: str, start: int = 1, *, strategy: str = "threshold", cache: str = "none", **more) -> Request:
    """A row from a pattern: ``_`` is a mask, any other character template text; prompt tokens stand before it."""
    masked = [False] * start + [c == "_" for c in pattern]
    tokens = [5] * start + [MASK if c == "_" else 3 + ord(c) % 90 for c in pattern]
    given = {name: more.pop(name) for name in list(more) if name in by_name()}
    options = ResolvedOptions(strategy=starr.strategy(strategy), cache=starr.cache(cache), **given)
    return Request(tokens, masked, start, options, **more)


def canvas_of(*requests: Request) -> Canvas:
    """The requests' rows with their first windows open."""
    return advance(new_canvas(requests, torch.device("cpu")), NO_IDS)[0]


def hold(canvas: Canvas, row: int, column: int, token: int = 9) -> Canvas:
    """The canvas with one position held."""
    tokens, masked = canvas.tokens.clone(), canvas.masked.clone()
    tokens[row, column], masked[row, column] = token, False
    return replace(canvas, tokens=tokens, masked=masked)
