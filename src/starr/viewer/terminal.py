"""Live decoding in a terminal: the canvas in the viewer's colours and words, one lane per run.

Where the output is no terminal, plain status lines come instead: one every ten seconds, and one at the end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.panel import Panel
from rich.text import Text

from starr.errors import counted
from starr.viewer.words import LOOK, MASK, make_visible, show_piece

if TYPE_CHECKING:
    from starr.decode.result import Event

Canvas = list[tuple[str, str]]
"""(text of the token, state) for every position; state is masked, held or settled."""

FRAME_SECONDS, LINE_SECONDS = 0.08, 10.0


@dataclass(slots=True)
class LiveLane:
    """The last picture of a lane."""

    name: str
    canvas: Canvas = field(default_factory=list)
    text: Text = field(default_factory=Text)
    status: str = "waiting"
    drawn: float = float("-inf")


class Live:
    """Shows the events of ``starr.stream``; a race has several lanes.

    Drawing is throttled, so that it does not slow the decoding; the last event of a lane is always drawn.
    """

    def __init__(self, names: Sequence[str], *, stream: IO[str] | None = None, console: Console | None = None) -> None:
        self.console = console or Console(file=stream, highlight=False)
        self.lanes = [LiveLane(name) for name in names]
        self.screen: Screen | None = None

    def __enter__(self) -> Live:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self.screen = Screen(console=self.console, auto_refresh=False, vertical_overflow="crop")
            self.screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.screen is None:
            return
        self.screen.update(self.draw(whole=True))
        self.screen.stop()

    def show(self, event: Event, lane: int = 0) -> None:
        """Draw an event in its lane, unless the lane was drawn a moment ago."""
        now, own = time.monotonic(), self.lanes[lane]
        if self.screen is None and own.drawn < 0:
            own.drawn = now  # a short run is one line
        wait = LINE_SECONDS if self.screen is None else FRAME_SECONDS
        if now - own.drawn < wait and not event.done:
            return
        own.drawn, own.status = now, write_status(event)
        if self.screen is None:
            self.console.print(f"{make_visible(own.name)}: {own.status}", markup=False, soft_wrap=True)
            return
        own.text, own.canvas = paint(event.canvas, own.canvas), event.canvas
        self.screen.update(self.draw(), refresh=True)

    def draw(self, whole: bool = False) -> RenderableType:
        """Draw all lanes, each cut to its share of the screen unless ``whole``."""
        room = max(1, self.console.height // len(self.lanes) - 4)
        return Group(*(part for lane in self.lanes for part in self.draw_lane(lane, None if whole else room)))

    def draw_lane(self, lane: LiveLane, room: int | None) -> tuple[Panel, Text]:
        """Draw a lane's text in a frame, and its status below."""
        text = lane.text if room is None else clip_lines(lane.text, self.console, room)
        return Panel(text, title=Text(make_visible(lane.name)), title_align="left"), Text(lane.status, style="dim")


def write_status(event: Event) -> str:
    """Write the masks left and the figures so far."""
    stats = event.stats if event.generation is None else event.generation.stats
    masks = sum(state == "masked" for _, state in event.canvas)
    return " · ".join(
        [
            "⚑ done" if event.done else f"{counted(masks, 'mask')} left",
            counted(stats.forwards, "forward"),
            f"{stats.tokens_per_forward:.2f} tokens per forward",
            f"{stats.tokens_per_second:.1f} tokens per second",
            counted(stats.revocations, "revocation"),
        ]
    )


def paint(canvas: Canvas, before: Canvas) -> Text:
    """Paint the canvas; what changed since the last picture is fresh, revoked or revised."""
    text = Text()
    padded = before + [("", "masked")] * (len(canvas) - len(before))
    for now, last in zip(canvas, padded, strict=False):
        word, piece = compare_position(now, last)
        text.append(MASK if word == "masked" else show_piece(piece), style=LOOK[word].style)
    return text


def compare_position(now: tuple[str, str], last: tuple[str, str]) -> tuple[str, str]:
    """Return the state and text to show for one position: a revoked one shows the token it lost."""
    (piece, state), (old, was) = now, last
    if state == "masked":
        return ("masked", "") if was == "masked" else ("revoked", old)
    if was == "masked":
        return "fresh", piece
    return (state, piece) if piece == old else ("revised", piece)


def clip_lines(text: Text, console: Console, room: int) -> Text:
    """Keep at most ``room`` lines: those around the first mask, where the work is, or else the last ones."""
    lines = text.wrap(console, max(1, console.width - 4))
    if len(lines) <= room:
        return text
    work = next((index for index, line in enumerate(lines) if MASK in line.plain), len(lines))
    first = max(0, min(work - 1, len(lines) - room))
    return Text("\n").join(lines[first : first + room])
