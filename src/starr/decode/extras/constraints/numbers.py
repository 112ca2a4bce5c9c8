"""Whole numbers between two bounds, as a regular expression over their decimal digits."""

from __future__ import annotations


def integer_range(low: int | None, high: int | None) -> str:
    """Integers from ``low`` to ``high``, both inclusive, None being no bound; no leading zeros, no -0."""
    parts = []
    if low is None or low < 0:
        smallest = None if low is None else -low
        largest = 1 if high is None or high > -1 else -high
        parts.append(f"-(?:{positive(largest, smallest)})")
    if high is None or high >= 0:
        start = 0 if low is None or low < 0 else low
        parts.append(positive(start, high))
    return f"(?:{'|'.join(parts)})"


def positive(low: int, high: int | None) -> str:
    """The same for 0 <= low."""
    if high is None:
        more = f"[1-9][0-9]{{{len(str(low))},}}"
        return f"{positive(low, 10 ** len(str(low)) - 1)}|{more}"
    parts = []
    while low <= high:
        top = min(high, 10 ** len(str(low)) - 1)
        parts += same_length(str(low), str(top))
        low = top + 1
    return "|".join(parts)


def same_length(low: str, high: str) -> list[str]:
    """Alternatives for numbers of equally many digits."""
    if not low:
        return [""]
    rest = len(low) - 1
    if low[0] == high[0]:
        return [low[0] + tail for tail in same_length(low[1:], high[1:])]
    parts = [low[0] + tail for tail in same_length(low[1:], "9" * rest)]
    first, last = int(low[0]) + 1, int(high[0]) - 1
    if first <= last:
        parts.append(f"[{first}-{last}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    return parts + [high[0] + tail for tail in same_length("0" * rest, high[1:])]
