"""Python functions for a chain of operations, in several styles with the same meaning."""

from __future__ import annotations

from random import Random

from starr.evals.tasks.list_ops import Chosen

HEAD = "def f(xs):"
# The first leads: with equal shares, greedy decoding would change its mind in the middle of a function.
STYLES, STYLE_WEIGHTS = ("comprehension", "builtins", "loop"), (70, 15, 15)


def draw_style(rng: Random) -> str:
    """A style of code at random, by weight."""
    return rng.choices(STYLES, STYLE_WEIGHTS)[0]


def write_function(style: str, chain: list[Chosen]) -> str:
    """The function in one style, for 1 to 4 operations; the last line returns."""
    if style == "loop":
        return write_loop(chain)
    lines = [expression(item, style) for item in chain]
    body = [f"    xs = {line}" for line in lines[:-1]] + [f"    return {lines[-1]}"]
    return "\n".join([HEAD, *body])


def expression(item: Chosen, style: str) -> str:
    """One operation over the whole list ``xs``."""
    op = item.op
    if op.whole:
        return item.fill(op.whole)
    if style == "builtins":
        body = item.fill(op.test or op.value)
        return f"list({'filter' if op.test else 'map'}(lambda x: {body}, xs))"
    if op.test:
        return f"[x for x in xs if {item.fill(op.test)}]"
    return f"[{item.fill(op.value)} for x in xs]"


def write_loop(chain: list[Chosen]) -> str:
    """Leading element-wise operations in one loop, the rest over the whole list."""
    count = 0
    while count < len(chain) and not chain[count].op.whole:
        count += 1
    lines = [HEAD]
    if count:
        lines += ["    ys = []", "    for x in xs:", *loop_body(chain[:count])]
    name = "ys" if count else "xs"
    for index, item in enumerate(chain[count:], start=count + 1):
        text = expression(item, "comprehension").replace("xs", name)
        lines.append(f"    return {text}" if index == len(chain) else f"    {name} = {text}")
    if count == len(chain):
        lines.append(f"    return {name}")
    return "\n".join(lines)


def loop_body(items: list[Chosen]) -> list[str]:
    """The loop's lines: a filter skips the rest with ``continue``, a map replaces ``x``."""
    lines = []
    for item in items[:-1]:
        lines += element(item)
    last = items[-1]
    if last.op.test:
        lines += [f"        if {last.fill(last.op.test)}:", "            ys.append(x)"]
    else:
        lines.append(f"        ys.append({last.fill(last.op.value)})")
    return lines


def element(item: Chosen) -> list[str]:
    """The lines of a loop that apply one operation."""
    if item.op.test:
        return [f"        if not {item.fill(item.op.test)}:", "            continue"]
    return [f"        x = {item.fill(item.op.value)}"]
