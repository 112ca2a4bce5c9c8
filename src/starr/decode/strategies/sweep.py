"""How a strategy is compared: its family, and the option that trades quality for speed."""

from __future__ import annotations

from dataclasses import dataclass

FIXED = "a fixed number per step"
SURE = "as many as are sure"
NEAR = "those near sure ones too"
REVOKE = "that revoke (remask)"
FAMILIES = (FIXED, SURE, NEAR, REVOKE)
TAU = (0.95, 0.9, 0.8, 0.6)
TOKENS_PER_STEP = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The values of the main option, most careful first; those of ``steps`` are tokens per step."""

    family: str
    option: str = "tau"
    values: tuple[float, ...] = TAU

    def forms(self, name: str, canvas: int) -> list[str]:
        """The text forms of a strategy over a canvas; one token per step is its plain name."""
        if self.option != "steps":
            return [f"{name}:{self.option}={value}" for value in self.values]
        return [name if value == 1 else f"{name}:steps={max(1, canvas // int(value))}" for value in self.values]
