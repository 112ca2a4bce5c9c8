"""Automata, made once for each (constraint, vocabulary) and kept while there is room."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from starr.decode.extras.constraints.automaton import Automaton, Bools, Ints, Spelling, lift, minimal, spelling_of
from starr.decode.extras.constraints.expression import AskedConstraint
from starr.decode.extras.constraints.reach import Reach, Walk
from starr.decode.extras.constraints.tables import ClassTable
from starr.errors import InputError
from starr.optional import need

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.model.text.tokenizer import Tokenizer

Key = tuple[AskedConstraint, str]  # and the vocabulary's fingerprint

SECONDS = 0.6  # of processor time in the child
PATIENCE = 1.5  # seconds until the child is ended, whatever it did; an ordinary expression takes a tenth of one
MEMORY = 1 << 30
RAW_STATES = 12_000  # before and ...
STATES = 3_000  # ... after equal ones are merged
KEPT_BYTES = 256 << 20
KEPT = 64
REFUSED = 128  # refusals that are remembered
MOST_SHOWN = 10_000  # sets in traces of one constraint
SHOWN_TOKENS = 12  # of each
REMEMBERED_BYTES = 64 << 20  # of walks, for each constraint


class Hurried(InputError):
    """The child was ended by the clock. The machine may have been busy, so this refusal is not remembered."""


def bytes_automaton(wanted: AskedConstraint) -> tuple[Ints, int, Bools]:
    """The smallest automaton over bytes (S + 1, 256), its start and which states are final; DEAD is the last state."""
    expression, patterns = wanted.expression()
    asked = {"expression": expression, "patterns": patterns, "seconds": SECONDS, "bytes": MEMORY, "states": RAW_STATES}
    head, body = ask_child(json.dumps(asked).encode(), wanted.kind)
    states = head["states"]
    table = np.full((states + 1, 256), -1, dtype=np.int32)
    table[:-1] = np.frombuffer(body, dtype=np.int32).reshape(states, 256)
    final = np.zeros(states + 1, dtype=bool)
    final[head["final"]] = True
    return minimal(table, head["start"], final)


def ask_child(asked: bytes, param: str) -> tuple[dict[str, Any], bytes]:
    """Run the child; whatever ends it early is a refusal."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("child.py"))]
    hint = "Shorten it, or bound its repeats."
    try:
        done = subprocess.run(command, input=asked, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise Hurried(f"{param} takes too long to compile.", hint=hint, param=param) from None
    if done.returncode != 0:
        raise InputError(f"{param} takes too long to compile, or too much memory.", hint=hint, param=param)
    line, _, body = done.stdout.partition(b"\n")
    head = json.loads(line)
    if "error" in head:
        why = head["error"]
        advice = hint if "states" in why else "Expressions are those of Rust's regex library."
        raise InputError(f"{param} cannot be used: {why}.", hint=advice, param=param)
    return head, body


def compile_constraint(wanted: AskedConstraint, spelling: Spelling) -> Automaton:
    """Expression to token automaton; raises InputError for what cannot become one within the bounds above."""
    table, start, final = bytes_automaton(wanted)
    if len(table) - 1 > STATES:
        raise InputError(
            f"{wanted.kind} needs {len(table) - 1} states; at most {STATES} are allowed.",
            hint="Bound its repeats, or ask for less at once.",
            param=wanted.kind,
        )
    found = lift(table, start, final, spelling, wanted.kind)
    if found.shortest is None:
        raise InputError(
            f"{wanted.kind} allows no text that the model's tokens can write.", hint="Widen it.", param=wanted.kind
        )
    return found


class Constraint:
    """A compiled constraint: its automaton, and what is remembered of walks over it, which is bounded."""

    def __init__(self, wanted: AskedConstraint, automaton: Automaton) -> None:
        self.wanted, self.automaton = wanted, automaton
        self.reach = Reach(automaton)
        self.tables: dict[torch.device, ClassTable] = {}
        self.shown: list[tuple[int, list[int]]] = [(0, [])]  # sets in traces: how many tokens, and the first of them
        self.numbers: dict[bytes, int] = {}

    @property
    def nbytes(self) -> int:
        """About what it takes, with all that is remembered."""
        return self.automaton.nbytes + self.reach.nbytes + sum(table.nbytes for table in list(self.tables.values()))

    def table(self, device: torch.device) -> ClassTable:
        """The automaton's classes on a device."""
        return self.tables.setdefault(device, ClassTable(self.automaton, device))

    def set_number(self, walk: Walk, place: int) -> int:
        """The place in ``shown`` of a position's set, for traces; 0 where there are too many."""
        kinds = walk.kinds(place)
        number = self.numbers.get(kinds.tobytes())
        if number is None and len(self.shown) < MOST_SHOWN:
            tokens = np.flatnonzero(kinds[self.automaton.class_of])
            number = self.numbers[kinds.tobytes()] = len(self.shown)
            self.shown.append((len(tokens), tokens[:SHOWN_TOKENS].tolist()))
        return number or 0

    def walk(self, symbols: Sequence[int]) -> Walk:
        """A canvas; begins with an empty memory when the present one is full."""
        if self.reach.nbytes > REMEMBERED_BYTES:
            self.reach = Reach(self.automaton)  # walks under way keep the old one
        return Walk(self.reach, symbols)


class Kept:
    """The constraints used last, bounded in number and bytes, and the last refusals.

    One thread compiles a constraint, others wait for it.
    """

    def __init__(self, most: int = KEPT, most_bytes: int = KEPT_BYTES, most_refused: int = REFUSED) -> None:
        self.most, self.most_bytes, self.most_refused = most, most_bytes, most_refused
        self.found: OrderedDict[Key, Constraint] = OrderedDict()
        self.refused: OrderedDict[Key, InputError] = OrderedDict()
        self.lock = threading.Lock()
        self.busy: dict[Key, threading.Lock] = {}

    def get(self, wanted: AskedConstraint, spelling: Spelling) -> Constraint:
        key = (wanted, spelling.fingerprint)
        with self.lock:
            own = self.busy.setdefault(key, threading.Lock())
        with own:
            try:
                return self._known(key) or self._made(key, spelling)
            finally:
                with self.lock:
                    self.busy.pop(key, None)

    def _known(self, key: Key) -> Constraint | None:
        with self.lock:
            if (error := self.refused.get(key)) is not None:
                self.refused.move_to_end(key)
                raise InputError(error.message, hint=error.hint, param=error.param)
            if key in self.found:
                self.found.move_to_end(key)
            return self.found.get(key)

    def _made(self, key: Key, spelling: Spelling) -> Constraint:
        need("grammar", key[0].kind)  # not remembered: it can be installed
        try:
            return self._keep(key, Constraint(key[0], compile_constraint(key[0], spelling)))
        except Hurried:
            raise
        except InputError as error:
            self._refuse(key, InputError(error.message, hint=error.hint, param=error.param))  # without a traceback
            raise

    def _refuse(self, key: Key, error: InputError) -> None:
        with self.lock:
            self.refused[key] = error
            if len(self.refused) > self.most_refused:
                self.refused.popitem(last=False)

    def _keep(self, key: Key, constraint: Constraint) -> Constraint:
        with self.lock:
            self.found[key] = constraint
            while len(self.found) > 1 and (len(self.found) > self.most or self.nbytes > self.most_bytes):
                self.found.popitem(last=False)
        return constraint

    @property
    def nbytes(self) -> int:
        return sum(constraint.nbytes for constraint in self.found.values())


KNOWN = Kept()
SPELLINGS: WeakKeyDictionary[Tokenizer, Spelling] = WeakKeyDictionary()


def spelling_for(model: Model) -> Spelling:
    """The bytes of the model's tokens, read once; special tokens and ids without text occur in no answer."""
    tokenizer, spec = model.tokenizer, model.spec
    if tokenizer not in SPELLINGS:
        special = {*tokenizer.special_ids, spec.mask_id, *spec.eos_ids}
        size = spec.shape.vocab_size
        letters = [b"" if token in special else tokenizer.bytes_of(token) for token in range(size)]
        SPELLINGS[tokenizer] = spelling_of(letters, spec.eos_ids)
    return SPELLINGS[tokenizer]


def constraint_for(model: Model, wanted: AskedConstraint) -> Constraint:
    """The constraint over the model's tokens."""
    return KNOWN.get(wanted, spelling_for(model))
