"""The page as a file: whole, closed to the network, and safe whatever the trace says."""

from __future__ import annotations

import re

import pytest

from starr.errors import InputError, LoadError
from starr.viewer.html import SCRIPTS, build_page, read_source
from tests.viewer.traces import make


def test_one_file_that_asks_for_nothing_else():
    text = build_page([make(length=12)], "A title")
    assert "<title>A title · How many apples?</title>" in text
    assert not re.search(r"""(src|href)=["'](?!data:,)""", text)
    assert "default-src 'none'" in text
    assert not re.search(r"@[A-Z_]+@", text)
    assert "http" not in text.replace("http-equiv", "")


def test_no_script_reads_text_as_html():
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    assert not any(unsafe.search(read_source(f"{name}.js")) for name in SCRIPTS)


def test_title_and_trace_cannot_break_out():
    nasty = "</title></script><script>alert(1)</script>@DATA@"
    text = build_page([make(length=6, prompt=nasty, strategy=nasty, words=(nasty,))], nasty)
    assert "<script>alert" not in text
    assert text.count("</script>") == build_page([make(length=6)], "x").count("</script>")


def test_the_title_begins_the_prompt_that_the_lanes_share():
    long = make(prompt="  How many apples does Tom have today, after lunch?\nThink.")
    assert "<h1>Run · How many apples does Tom have today, after lunch?</h1>" in build_page([long, long], "Run")
    for traces in ([make(prompt="")], [make(prompt="a"), make(prompt="b")]):
        assert "<h1>Run</h1>" in build_page(traces, "Run")


def test_same_traces_same_page():
    assert build_page([make()], "x") == build_page([make()], "x")


@pytest.mark.parametrize("count", [0, 5])
def test_one_to_four_lanes(count):
    with pytest.raises(InputError, match="1 to 4 traces"):
        build_page([make(length=4)] * count, "x")


def test_a_wrong_trace_is_named():
    with pytest.raises(LoadError, match="trace 2: trace format 9 is newer"):
        build_page([make(length=4), make(length=4) | {"version": 9}], "x")


def test_scripts_stay_readable():
    for name in SCRIPTS:
        assert len(read_source(f"{name}.js").splitlines()) <= 200
