"""Live decoding in a terminal, and its plain lines elsewhere."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from starr.viewer.terminal import Live, clip_lines, compare_position, paint
from starr.viewer.words import LOOK, make_visible, show_piece


def event(canvas, *, done=False, forwards=3):
    stats = SimpleNamespace(forwards=forwards, tokens_per_forward=2.5, tokens_per_second=40.0, revocations=1)
    generation = SimpleNamespace(stats=stats) if done else None
    return SimpleNamespace(canvas=canvas, stats=stats, done=done, generation=generation)


def screen(**options):
    return Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=60, height=12, **options)


@pytest.mark.parametrize(
    ("now", "last", "expected"),
    [
        (("", "masked"), ("", "masked"), ("masked", "")),
        (("a", "held"), ("", "masked"), ("fresh", "a")),
        (("", "masked"), ("a", "held"), ("revoked", "a")),
        (("b", "held"), ("a", "held"), ("revised", "b")),
        (("a", "held"), ("a", "held"), ("held", "a")),
        (("a", "settled"), ("a", "held"), ("settled", "a")),
    ],
)
def test_what_changed_since_the_last_drawing(now, last, expected):
    assert compare_position(now, last) == expected


def test_every_state_has_a_style_of_its_own():
    text = paint([("a", "held"), ("", "masked"), ("c", "held")], [("a", "held"), ("b", "held"), ("", "masked")])
    assert text.plain == "abc"
    assert [span.style for span in text.spans] == [LOOK[word].style for word in ("held", "revoked", "fresh")]
    assert len({look.style for look in LOOK.values()}) == len(LOOK)


def test_a_terminal_shows_lanes_and_figures():
    console = screen()
    with Live(["starr", "confidence"], console=console) as live:
        live.show(event([("Hello", "held"), ("", "masked")]))
        live.show(event([("Hello", "settled"), (" world", "settled")], done=True), 1)
    output = " ".join(re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", console.file.getvalue()).split())
    figures = ("1 mask left", "3 forwards", "2.50 tokens per forward", "40.0 tokens per second", "1 revocation")
    for word in ("starr", "confidence", "Hello", "▒", "⚑ done", *figures):
        assert word in output


def test_a_screen_is_never_overfull_but_the_whole_text_stays_at_the_end():
    console = screen()
    long = [(f"line{index}\n", "held") for index in range(40)]
    with Live(["starr"], console=console) as live:
        live.show(event(long))
        during = console.file.getvalue()
    assert during.count("\n") < console.height
    assert all(f"line{index}" in console.file.getvalue()[len(during) :] for index in range(40))


def test_no_text_can_steer_the_terminal():
    console = screen()
    with Live(["\x1b[31mred"], console=console) as live:
        live.show(event([("\x1b]0;owned\x07", "held"), ("[bold]x[/bold]", "held")], done=True))
    output = console.file.getvalue()
    assert "\x1b]0;owned" not in output
    assert "\x1b[31mred" not in output
    assert "␛]0;owned␇" in output
    assert "[bold]x[/bold]" in output


def test_plain_lines_where_there_is_no_terminal(monkeypatch):
    """One every ten seconds, and one at the end; five forwards here, of six seconds each."""
    seconds = iter(range(0, 60, 6))
    monkeypatch.setattr("starr.viewer.terminal.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    stream = io.StringIO()
    with Live(["starr"], stream=stream) as live:
        for forwards in range(1, 6):
            live.show(event([("", "masked")], forwards=forwards))
        live.show(event([("x", "settled")], done=True, forwards=6))
    lines = stream.getvalue().splitlines()
    assert lines == [
        "starr: 1 mask left · 3 forwards · 2.50 tokens per forward · 40.0 tokens per second · 1 revocation",
        "starr: 1 mask left · 5 forwards · 2.50 tokens per forward · 40.0 tokens per second · 1 revocation",
        "starr: ⚑ done · 6 forwards · 2.50 tokens per forward · 40.0 tokens per second · 1 revocation",
    ]
    assert "\x1b" not in stream.getvalue()


def test_long_texts_show_where_the_work_is():
    canvas = [(f"line{index}\n", "held") for index in range(30)] + [("", "masked")] + [("end\n", "held")] * 30
    found = clip_lines(paint(canvas, canvas), screen(), 5).plain
    assert "▒" in found
    assert len(found.splitlines()) == 5


def test_an_interrupted_run_gives_the_terminal_back():
    console = screen()

    def interrupted():
        with Live(["starr"], console=console) as live:
            live.show(event([("a", "held")]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert console.file.getvalue().rstrip("\n").endswith("\x1b[?25h")


def test_pieces_as_shown():
    assert show_piece("<|endoftext|>") == "∎"
    assert show_piece("<b>") == "<b>"
    assert make_visible("a\tb\n\x7f\u202e") == "a    b\n␡�"
