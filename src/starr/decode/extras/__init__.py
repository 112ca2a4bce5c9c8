"""Features that only one strategy, cache or stop rule uses, each behind the loop's hooks (``extras.base``)."""

from __future__ import annotations

from starr.decode.extras.base import Guest
from starr.decode.extras.bias import Bias
from starr.decode.extras.constraints.guest import Constraints
from starr.decode.extras.drafts import Drafts
from starr.decode.extras.extra_steps import ExtraSteps
from starr.decode.extras.growth import Growth
from starr.decode.extras.movement import Movement
from starr.decode.extras.outlook import Outlook
from starr.decode.extras.repetition import Repetition
from starr.decode.extras.second_look import SecondLook
from starr.decode.extras.shadow import Shadow
from starr.decode.extras.shortening import Shortening
from starr.decode.extras.smoothing import Smoothing
from starr.decode.extras.verify import Verify

GUESTS: tuple[type[Guest], ...] = (
    Movement,
    SecondLook,
    Shadow,
    Drafts,
    Outlook,
    Repetition,
    Bias,
    Smoothing,
    Growth,
    Shortening,
    ExtraSteps,
    Verify,
    Constraints,
)
"""Every guest, in the order in which the loop asks them. Constraints see what the others let through."""
