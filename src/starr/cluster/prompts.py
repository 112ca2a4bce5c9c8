"""Many prompts over many workers, their results in order."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from starr.cluster.fleet import Fleet, actors
from starr.cluster.start import Size, connected
from starr.cluster.worker import ModelSource, PromptWorker
from starr.options import Options

WINDOW = 512


def generate_on(size: Size, loading: ModelSource, prompts: Sequence[Any], rows: int, options: Options) -> Iterator[Any]:
    """The result of every prompt as a dictionary, or a Failure, in the order of the prompts.

    Of every WINDOW prompts the longest go first, so a result may wait for those before it; it is kept meanwhile.
    """
    with connected(size) as (ray, known):
        start = actors(ray, known, PromptWorker, loading, (list(prompts), rows, options))
        fleet = Fleet(ray, known, start, lambda line: print(line, file=sys.stderr, flush=True))
        waiting: dict[int, Any] = {}
        next_place = 0
        try:
            for (_, place), result in fleet.work([(None, place) for place in in_windows(prompts)], 2 * rows):
                waiting[place] = result
                while next_place in waiting:
                    yield waiting.pop(next_place)
                    next_place += 1
        finally:
            fleet.end()


def in_windows(prompts: Sequence[Any]) -> list[int]:
    """Places in the order of work: window after window, the longest prompts of each first."""
    places = range(len(prompts))
    return sorted(places, key=lambda place: (place // WINDOW, -len(str(prompts[place]))))
