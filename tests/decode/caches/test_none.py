"""No cache: all of the row, always, and no buffer."""

import starr
from tests.decode.rows import canvas_of, request


def test_everything_valid_is_queried():
    none = starr.cache("none")
    canvas = canvas_of(request("__"), request("____"))
    assert none.query(canvas).sum(1).tolist() == [3, 5]
    assert not none.buffered
