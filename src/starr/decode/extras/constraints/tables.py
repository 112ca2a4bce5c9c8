"""Allowed sets on the device: classes spread over the vocabulary, each set once."""

from __future__ import annotations

import torch
from torch import Tensor

from starr.decode.extras.constraints.automaton import ENDING, Automaton
from starr.decode.extras.constraints.reach import GOES_ON, Reach, Walk

KEPT_BYTES = 64 << 20


class ClassTable:
    """One automaton's classes on a device, and the sets that were used last, as rows over the vocabulary."""

    def __init__(self, automaton: Automaton, device: torch.device) -> None:
        self.class_of = torch.from_numpy(automaton.class_of).to(device=device, dtype=torch.int64)  # (V,)
        self.classes = automaton.classes
        self.sets: dict[tuple[int, int, bool], Tensor] = {}
        self.of: Reach | None = None

    def allowed(self, walk: Walk, key: tuple[int, int, bool]) -> Tensor:
        """(V,) bool: the tokens of a set; ``key`` is its name and whether no end-of-text is in it."""
        if walk.reach is not self.of or len(self.sets) * len(self.class_of) > KEPT_BYTES:
            self.sets, self.of = {}, walk.reach
        found = self.sets.get(key)
        if found is None:
            kinds = torch.from_numpy(walk.reach.allowed(key[0], key[1]).copy())
            if key[2]:
                kinds[ENDING] = False
            found = self.sets[key] = kinds.to(self.class_of.device)[self.class_of]
        return found

    @property
    def nbytes(self) -> int:
        return self.class_of.nbytes + len(self.sets) * len(self.class_of)

    def best_of_classes(self, values: Tensor) -> Tensor:
        """(N, K): the largest of each class among values (N, V)."""
        blank = values.new_full((len(values), self.classes), -torch.inf)
        return blank.scatter_reduce_(1, self.class_of.expand_as(values), values, "amax")


class SetTable:
    """The sets of one step; set 0 has every token, for positions of rows without a constraint."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.rows = [torch.ones(size, dtype=torch.bool, device=device)]
        self.known: dict[tuple[int, int, int, bool], int] = {}

    def numbers(self, table: ClassTable, walk: Walk, places: range) -> list[int]:
        """The set of each of some positions."""
        return [self.number(table, walk, place) for place in places]

    def number(self, table: ClassTable, walk: Walk, place: int) -> int:
        key = (*walk.set_at(place), walk.symbols[place] == GOES_ON)
        known = self.known.setdefault((id(table), *key), len(self.rows))
        if known == len(self.rows):
            self.rows.append(table.allowed(walk, key))
        return known

    def stacked(self) -> Tensor:
        """(M, V) bool."""
        return torch.stack(self.rows)
