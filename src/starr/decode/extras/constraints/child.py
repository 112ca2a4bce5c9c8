"""The one place where an expression becomes an automaton: a process of its own, which may fail or be ended.

Reads {"expression", "patterns", "seconds", "bytes", "states"} from standard input. Writes one line of JSON, either
{"error"} or {"states", "start", "final"}, and after it the table (states, 256) of next states as int32, -1 for none.
"""

import json
import signal
import sys
from array import array
from typing import Any

UNQUOTED = [*range(0x20), 0x22, 0x5C, 0x7F]  # what a JSON string writes only with a backslash, or not at all
SENTINEL = "\U0010ffff"  # see ``pattern``
Edges = dict[int, dict[int, int]]


def limit(seconds: float, size: int) -> None:
    """Let the system end this process when it has used its time, and refuse it more memory than its share."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)  # nobody catches the signal
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def table_of(expression: str, vocabulary: object) -> tuple[Edges, int, list[int]]:
    """The moves of every state, the state after the first sentinel, and the states before the last one."""
    from outlines_core import Index

    index = Index(f"{SENTINEL}(?:{expression}){SENTINEL}", vocabulary)
    edges, start, behind = index.get_transitions(), index.get_initial_state(), index.get_final_states()
    for byte in SENTINEL.encode():
        start = edges[start][byte]
    final = [state for state in edges if state not in behind and ends(edges, state, behind)]
    kept = {state: moves for state, moves in edges.items() if state not in behind}
    return {s: {b: n for b, n in moves.items() if n not in behind} for s, moves in kept.items()}, start, final


def reached(edges: Edges, start: int) -> list[int]:
    """The states that the start leads to, itself first."""
    found, seen = [start], {start}
    for state in found:
        new = set(edges.get(state, {}).values()) - seen
        found += sorted(new)
        seen |= new
    return found


def ends(edges: Edges, state: int | None, behind: set[int]) -> bool:
    """Whether the sentinel leads from the state to the end."""
    for byte in SENTINEL.encode():
        state = None if state is None else edges.get(state, {}).get(byte)
    return state in behind


def answer(asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    from outlines_core import Vocabulary

    vocabulary = Vocabulary(256, {bytes([byte]): [byte] for byte in range(256)})
    for pattern in asked["patterns"]:
        edges = table_of(pattern, vocabulary)[0]
        if any(byte in moves for moves in edges.values() for byte in UNQUOTED):
            return {"error": "a pattern lets a quote, a backslash or a control character into a string"}, b""
    edges, start, final = table_of(asked["expression"], vocabulary)
    names = reached(edges, start)
    if len(names) > asked["states"]:
        return {"error": f"it needs {len(names)} states; at most {asked['states']} are allowed"}, b""
    place = {name: number for number, name in enumerate(names)}
    table = array("i", [-1]) * (256 * len(names))
    for name in names:
        for byte, following in edges.get(name, {}).items():
            table[256 * place[name] + byte] = place[following]
    head = {"states": len(names), "start": place[start], "final": [place[name] for name in final if name in place]}
    return head, table.tobytes()


def reason(said: str) -> str:
    """What the library found wrong, in our words."""
    if "vocabulary" in said:
        return "there is no text that it allows"
    if "surrogates" in said:
        return "it has half a character (a lone surrogate)"
    return "it has a word boundary" if "boundar" in said else "it cannot be read as a regular expression"


def main() -> None:
    asked = json.load(sys.stdin)
    limit(asked["seconds"], asked["bytes"])
    try:
        head, table = answer(asked)
    except ImportError:
        raise
    except Exception as error:  # the library raises bare ValueError for every expression that it cannot use
        head, table = {"error": reason(str(error))}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + table)


if __name__ == "__main__":
    main()
