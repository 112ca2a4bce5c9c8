"""Whatever a stranger's file holds: a page, or one line; never a traceback of another kind."""

from __future__ import annotations

import copy
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from starr.errors import LoadError
from starr.viewer.html import build_page
from tests.viewer.traces import make

TRACE = make(length=6, block=3)
JUNK = (None, True, -1, 7, 10**400, 0.5, float("nan"), float("inf"), "\ud800", [], [1, 2], {}, {"a": 1}, [None] * 3)


def places(value, path=()):
    """The path of every value inside nested JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*path, key)
        yield from places(part, (*path, key))


PLACES = list(places(TRACE))


@settings(deadline=None, max_examples=300)
@given(place=st.sampled_from(PLACES), junk=st.sampled_from(JUNK), drop=st.booleans())
def test_any_damage_gives_a_page_or_one_line(place, junk, drop):
    trace = copy.deepcopy(TRACE)
    inner = trace
    for key in place[:-1]:
        inner = inner[key]
    if drop:
        del inner[place[-1]]
    else:
        inner[place[-1]] = copy.deepcopy(junk)
    with suppress(LoadError):
        assert "</html>" in build_page([trace, TRACE], "damaged")
