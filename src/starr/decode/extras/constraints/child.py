"""The child process that turns an expression into an automaton over bytes. It may fail or be ended.

Reads {"expression", "patterns", "seconds", "bytes", "states"} from standard input. Writes one line of JSON, either
{"error"} or {"states", "start", "final"}, and after it the table (states, 256) of next states as int32, -1 for none.
"""

import json
import signal
import sys
from array import array
from typing import Any

UNQUOTED = [*range(0x20), 0x22, 0x5C, 0x7F]  # what a JSON string writes only with a backslash, or not at all
SENTINEL = "\U0010ffff"  # see ``expression``
Edges = dict[int, dict[int, int]]


def limit_process(seconds: float, size: int) -> None:
    """Let the system end this process after its time, and refuse it more memory than its share."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)  # nobody catches the signal
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def build_edges(expression: str, vocabulary: object) -> tuple[Edges, int, list[int]]:
    """Build the moves of every state, the state after the first sentinel, and the states before the last one."""
    from outlines_core import Index

    index = Index(f"{SENTINEL}(?:{expression}){SENTINEL}", vocabulary)
    edges, start, behind = index.get_transitions(), index.get_initial_state(), index.get_final_states()
    for byte in SENTINEL.encode():
        start = edges[start][byte]
    final = [state for state in edges if state not in behind and ends(edges, state, behind)]
    kept = {state: moves for state, moves in edges.items() if state not in behind}
    return {s: {b: n for b, n in moves.items() if n not in behind} for s, moves in kept.items()}, start, final


def list_reachable(edges: Edges, start: int) -> list[int]:
    """List the states that the start leads to, itself first."""
    states, seen = [start], {start}
    for state in states:
        new = set(edges.get(state, {}).values()) - seen
        states += sorted(new)
        seen |= new
    return states


def ends(edges: Edges, state: int | None, behind: set[int]) -> bool:
    """Test whether the sentinel leads from the state to the end."""
    for byte in SENTINEL.encode():
        state = None if state is None else edges.get(state, {}).get(byte)
    return state in behind


def answer(asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Build the head and the table for one question."""
    from outlines_core import Vocabulary

    vocabulary = Vocabulary(256, {bytes([byte]): [byte] for byte in range(256)})
    for pattern in asked["patterns"]:
        edges = build_edges(pattern, vocabulary)[0]
        if any(byte in moves for moves in edges.values() for byte in UNQUOTED):
            return {"error": "a pattern lets a quote, a backslash or a control character into a string"}, b""
    edges, start, final = build_edges(asked["expression"], vocabulary)
    names = list_reachable(edges, start)
    if len(names) > asked["states"]:
        return {"error": f"it needs {len(names)} states; at most {asked['states']} are allowed"}, b""
    number_of = {name: number for number, name in enumerate(names)}
    table = array("i", [-1]) * (256 * len(names))
    for name in names:
        for byte, following in edges.get(name, {}).items():
            table[256 * number_of[name] + byte] = number_of[following]
    head = {
        "states": len(names),
        "start": number_of[start],
        "final": [number_of[name] for name in final if name in number_of],
    }
    return head, table.tobytes()


def explain(error: str) -> str:
    """Say in plain words what the library refuses."""
    if "vocabulary" in error:
        return "there is no text that it allows"
    if "surrogates" in error:
        return "it has half a character (a lone surrogate)"
    return "it has a word boundary" if "boundar" in error else "it cannot be read as a regular expression"


def main() -> None:
    asked = json.load(sys.stdin)
    limit_process(asked["seconds"], asked["bytes"])
    try:
        head, table = answer(asked)
    except ImportError:
        raise
    except Exception as error:  # the library raises bare ValueError for every expression that it cannot use
        head, table = {"error": explain(str(error))}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + table)


if __name__ == "__main__":
    main()
