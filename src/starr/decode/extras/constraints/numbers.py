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
    """Alternatives for numbers of equally many digits; their count grows with the digits, not with the range."""
    if not low:
        return [""]
    rest, first, last = len(low) - 1, int(low[0]), int(high[0])
    if first == last:
        return [low[0] + tail for tail in same_length(low[1:], high[1:])]
    parts = []
    if low[1:].strip("0"):
        parts += [low[0] + tail for tail in same_length(low[1:], "9" * rest)]
        first += 1
    ends = []
    if high[1:].strip("9"):
        ends = [high[0] + tail for tail in same_length("0" * rest, high[1:])]
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    return parts + ends
