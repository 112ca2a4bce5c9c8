"""Small canvases for tests of the loop's steps."""

from __future__ import annotations

from dataclasses import replace

import torch

import starr
from starr.decode.advance import advance
from starr.decode.blocks import begin_blocks
from starr.decode.canvas import Canvas, columns_where, new_canvas, window_index
from starr.decode.enforce import Step
from starr.decode.forward import ForwardCall
from starr.decode.query import QueryPlan, Wishes, plan_query
from starr.decode.request import Request
from starr.decode.settings import settings_of
from starr.decode.view import Decision, StepView
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
    fresh = new_canvas(requests, torch.device("cpu"))
    return advance(fresh.noted(begin_blocks(requests, fresh)), NO_IDS)[0]


def hold(canvas: Canvas, row: int, column: int, token: int = 9) -> Canvas:
    """The canvas with one position held."""
    tokens, masked = canvas.tokens.clone(), canvas.masked.clone()
    tokens[row, column], masked[row, column] = token, False
    return replace(canvas, tokens=tokens, masked=masked)


def plan_of(*requests: Request, canvas: Canvas | None = None, shift: bool = False) -> QueryPlan:
    """The first query of the requests' rows, without guests."""
    canvas = canvas_of(*requests) if canvas is None else canvas
    settings = settings_of(requests, torch.device("cpu"), shift=shift)
    return plan_query(Wishes(canvas), settings, torch.zeros(len(requests)).bool(), shift=shift)


def call_of(canvas: Canvas, *requests: Request, observed: torch.Tensor | None = None) -> ForwardCall:
    """What a forward over the rows works on; ``observed`` (B, C) bool, the plan's if None."""
    plan = plan_of(*requests, canvas=canvas)
    chosen = plan.observed if observed is None else observed
    return ForwardCall(
        canvas=canvas,
        settings=settings_of(requests, torch.device("cpu")),
        plan=plan,
        window=window_index(canvas, plan.width),
        observed=columns_where(chosen, max(1, int(chosen.sum(1).max()))),
        buffer=None,
        plain=list(range(len(requests))),
        total=plan.figures.length,
        besides=[0] * len(requests),
    )


def step_of(canvas: Canvas, action: list[list[int]], **more) -> Step:
    """A step with these actions; the fields of its decision and its verdict are ``more``."""
    done, verdict = torch.tensor(action, dtype=torch.int8), more.pop("verdict", None)
    window = window_index(canvas, done.shape[1])
    view = StepView(
        *(getattr(canvas, name).gather(1, window) for name in ("tokens", "masked", "frozen")),
        *(getattr(canvas.last, name).gather(1, window) for name in ("proposal", "confidence", "best")),
        step=canvas.window.step,
        width=canvas.window.end - canvas.window.start,
        windows=canvas.rules.windows,
        block=canvas.rules.block,
    )
    last = canvas.total >= canvas.limit - 1
    return Step(canvas, window, view, view, Decision(done, **more), verdict, last, done, view.proposal)


def put(canvas: Canvas, **given: torch.Tensor) -> Canvas:
    """The canvas with these fields, wherever it has them; ``window_start`` and ``window_end`` are the window's."""
    parts = {name: {} for name in ("window", "last", "done", "rules")}
    own = {}
    for name, value in given.items():
        short = name.removeprefix("window_")
        homes = ["window"] if short != name else [part for part in parts if hasattr(getattr(canvas, part), name)]
        (parts[homes[0]] if homes else own)[short] = value
    return replace(canvas, **own, **{part: replace(getattr(canvas, part), **new) for part, new in parts.items()})
