"""Compile a constraint to an automaton over the model's tokens, once for each vocabulary, and keep the last ones.

The automaton over bytes comes from ``child``, a process of its own with bounded time and memory.
"""

from __future__ import annotations

import json
import re
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

from starr.decode.extras.constraints.automaton import Automaton, Spelling, lift, minimize, spell_tokens
from starr.decode.extras.constraints.calls import write_calls
from starr.decode.extras.constraints.expression import ConstraintSpec, rewrite_pattern
from starr.decode.extras.constraints.schema import Translator
from starr.decode.extras.constraints.walks import ClassTable, Reach, Walk
from starr.errors import InputError
from starr.optional import need

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.model.text.tokenizer import Tokenizer

Key = tuple[ConstraintSpec, str]  # and the vocabulary's fingerprint

CPU_SECONDS = 0.6  # of the child
WALL_SECONDS = 1.5  # until the child is ended; an ordinary expression takes a tenth of one
MEMORY = 1 << 30
MAX_RAW_STATES = 12_000  # before equal ones are merged
MAX_STATES = 3_000  # after
MAX_CONSTRAINTS = 64
MAX_BYTES = 256 << 20
MAX_REFUSALS = 128
MAX_MEMO_BYTES = 64 << 20  # of walks, for each constraint
MAX_TRACED_SETS = 10_000  # of one constraint
TRACED_TOKENS = 12  # of each set


class CompileTimeout(InputError):
    """The clock ended the child. The machine may have been busy, so the store does not remember this refusal."""


def write_expression(spec: ConstraintSpec) -> tuple[str, list[str]]:
    """Write the expression of the whole answer; return it with the patterns of JSON strings inside it."""
    if spec.kind == "regex":
        return rewrite_pattern(spec.text, "regex"), []
    given = json.loads(spec.text)
    if spec.kind == "choices":
        return "|".join(map(re.escape, given)), []
    if spec.kind == "tools":
        return write_calls(given)
    translator = Translator(given)
    return translator.translate(given), translator.patterns


def ask_child(question: bytes, param: str) -> tuple[dict[str, Any], bytes]:
    """Run the child; raise InputError where it refuses or ends early."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("child.py"))]
    hint = "Shorten it, or bound its repeats."
    try:
        done = subprocess.run(command, input=question, capture_output=True, timeout=WALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CompileTimeout(f"{param} takes too long to compile.", hint=hint, param=param) from None
    if done.returncode != 0:
        raise InputError(f"{param} takes too long to compile, or too much memory.", hint=hint, param=param)
    line, _, body = done.stdout.partition(b"\n")
    head = json.loads(line)
    if "error" in head:
        why = head["error"]
        advice = hint if "states" in why else "Expressions are those of Rust's regex library."
        raise InputError(f"{param} cannot be used: {why}.", hint=advice, param=param)
    return head, body


def compile_constraint(spec: ConstraintSpec, spelling: Spelling) -> Automaton:
    """Compile a constraint to an automaton over tokens; raise InputError where it does not stay within the bounds."""
    expression, patterns = write_expression(spec)
    limits = {"seconds": CPU_SECONDS, "bytes": MEMORY, "states": MAX_RAW_STATES}
    head, body = ask_child(json.dumps({"expression": expression, "patterns": patterns} | limits).encode(), spec.kind)
    moves = np.frombuffer(body, dtype=np.int32).reshape(head["states"], 256)
    table = np.concatenate([moves, np.full((1, 256), -1, dtype=np.int32)])
    final = np.isin(np.arange(len(table)), head["final"])
    table, start, final = minimize(table, head["start"], final)
    if len(table) - 1 > MAX_STATES:
        raise InputError(
            f"{spec.kind} needs {len(table) - 1} states; at most {MAX_STATES} are allowed.",
            hint="Bound its repeats, or ask for less at once.",
            param=spec.kind,
        )
    automaton = lift(table, start, final, spelling, spec.kind)
    if automaton.shortest is None:
        raise InputError(
            f"{spec.kind} allows no text that the model's tokens can write.", hint="Widen it.", param=spec.kind
        )
    return automaton


class Constraint:
    """A compiled constraint: its automaton, and a bounded memory of walks over it."""

    def __init__(self, spec: ConstraintSpec, automaton: Automaton) -> None:
        self.spec, self.automaton = spec, automaton
        self.reach = Reach(automaton)
        self.tables: dict[torch.device, ClassTable] = {}
        self.traced_sets: list[tuple[int, list[int]]] = [(0, [])]  # how many tokens, and the first of them
        self.numbers: dict[bytes, int] = {}

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes, with its memory of walks."""
        return self.automaton.nbytes + self.reach.nbytes + sum(table.nbytes for table in list(self.tables.values()))

    def table(self, device: torch.device) -> ClassTable:
        """Return the automaton's classes on a device."""
        return self.tables.setdefault(device, ClassTable(self.automaton, device))

    def number_set(self, walk: Walk, position: int) -> int:
        """Return the index in ``traced_sets`` of a position's set; 0 where there are too many sets."""
        classes = walk.classes_at(position)
        number = self.numbers.get(classes.tobytes())
        if number is None and len(self.traced_sets) < MAX_TRACED_SETS:
            tokens = np.flatnonzero(classes[self.automaton.class_of])
            number = self.numbers[classes.tobytes()] = len(self.traced_sets)
            self.traced_sets.append((len(tokens), tokens[:TRACED_TOKENS].tolist()))
        return number or 0

    def walk(self, symbols: Sequence[int]) -> Walk:
        """Walk over a canvas; a full memory is replaced by an empty one."""
        if self.reach.nbytes > MAX_MEMO_BYTES:
            self.reach = Reach(self.automaton)  # walks under way keep the old one
        return Walk(self.reach, symbols)


class ConstraintStore:
    """The constraints used last, bounded in number and bytes, and the last refusals.

    One thread compiles a constraint, others wait for it.
    """

    def __init__(
        self, max_constraints: int = MAX_CONSTRAINTS, max_bytes: int = MAX_BYTES, max_refusals: int = MAX_REFUSALS
    ) -> None:
        self.max_constraints, self.max_bytes, self.max_refusals = max_constraints, max_bytes, max_refusals
        self.constraints: OrderedDict[Key, Constraint] = OrderedDict()
        self.refusals: OrderedDict[Key, InputError] = OrderedDict()
        self.lock = threading.Lock()
        self.busy: dict[Key, threading.Lock] = {}

    def get(self, spec: ConstraintSpec, spelling: Spelling) -> Constraint:
        """Return the compiled constraint, or raise its refusal."""
        key = (spec, spelling.fingerprint)
        with self.lock:
            own = self.busy.setdefault(key, threading.Lock())
        with own:
            try:
                return self._look_up(key) or self._compile(key, spelling)
            finally:
                with self.lock:
                    self.busy.pop(key, None)

    def _look_up(self, key: Key) -> Constraint | None:
        with self.lock:
            if (error := self.refusals.get(key)) is not None:
                self.refusals.move_to_end(key)
                raise copy_error(error)
            if key in self.constraints:
                self.constraints.move_to_end(key)
            return self.constraints.get(key)

    def _compile(self, key: Key, spelling: Spelling) -> Constraint:
        need("grammar", key[0].kind)  # not remembered: it can be installed
        try:
            constraint = Constraint(key[0], compile_constraint(key[0], spelling))
        except CompileTimeout:
            raise
        except InputError as error:
            with self.lock:
                self.refusals[key] = copy_error(error)
                if len(self.refusals) > self.max_refusals:
                    self.refusals.popitem(last=False)
            raise
        with self.lock:
            self.constraints[key] = constraint
            while len(self.constraints) > 1 and (
                len(self.constraints) > self.max_constraints
                or sum(each.nbytes for each in self.constraints.values()) > self.max_bytes
            ):
                self.constraints.popitem(last=False)
        return constraint


def copy_error(error: InputError) -> InputError:
    """Copy an error without its traceback."""
    return InputError(error.message, hint=error.hint, param=error.param)


STORE = ConstraintStore()
SPELLINGS: WeakKeyDictionary[Tokenizer, Spelling] = WeakKeyDictionary()


def spell_vocabulary(model: Model) -> Spelling:
    """Read the bytes of the model's tokens, once; special tokens and ids without text occur in no answer."""
    tokenizer, spec = model.tokenizer, model.spec
    if tokenizer not in SPELLINGS:
        special = {*tokenizer.special_ids, spec.mask_id, *spec.eos_ids}
        size = spec.shape.vocab_size
        letters = [b"" if token in special else tokenizer.bytes_of(token) for token in range(size)]
        SPELLINGS[tokenizer] = spell_tokens(letters, spec.eos_ids)
    return SPELLINGS[tokenizer]


def compile_for(model: Model, spec: ConstraintSpec) -> Constraint:
    """Compile a constraint over the model's tokens, or return the one in the store."""
    return STORE.get(spec, spell_vocabulary(model))
