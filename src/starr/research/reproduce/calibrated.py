"""The fitted rule beside its peers: the same items, *both* and forwards, paired with ``threshold`` 0.9."""

from __future__ import annotations

from collections.abc import Sequence

from starr.evals.run.bench import Bench, Measured, difference
from starr.evals.run.results import compare
from starr.evals.run.runs import Run
from starr.research.reproduce.result import Result
from starr.research.reproduce.tables import compare_runs

PEERS = (
    "threshold:tau=0.9",
    "threshold:tau=0.95",
    "factor",
    "hierarchy",
    "learn2pd",
    "starr",
    "starr:variance=absolute",
    "starr:preset=careful",
)
BARS = ("budget=0.1", "budget=0.2", "budget=0.4", "budget=0.6", "floor=0.95")
OURS = ("calibrated", *(f"calibrated:{bar}" for bar in BARS))


def calibrated_runs(bench: Bench) -> list[Run]:
    """The peers, and the rule where one ships for the model; ``learn2pd`` where its filter ships."""
    peers = [text for text in PEERS if text != "learn2pd" or bench.has_filter]
    return [bench.run(text) for text in (*peers, *(OURS if bench.rule else ()))]


def against_the_best(measured: Sequence[Measured]) -> str:
    """The rule at its own budget beside the peer with the highest both; fewer forwards win a tie."""
    peers = [found for found in measured if not found.run.name.startswith(OURS[0])]
    best = max(peers, key=lambda found: (found.figures["both"], -found.figures["forwards"]))
    ours = next(found for found in measured if found.run.name == OURS[0])
    ratio = best.figures["forwards"] / ours.figures["forwards"]
    points = difference(compare(ours.samples, best.samples))
    told = f"{points} points and {ratio:.2f} x fewer forwards"
    return f"The best peer in both is {best.run.name}; against it {OURS[0]} has {told}."


def calibrated(bench: Bench) -> Result:
    """Peers at their defaults and the rule that ships for the model at several budgets."""
    runs = calibrated_runs(bench)
    notes = ["Every run is compared with threshold 0.9; an interval that holds 0 shows no difference."]
    if rule := bench.rule:
        notes.append(f"The rule was fitted on {rule.fitted_on['prompts']} prompts; its own budget is {rule.budget:g}.")
        notes.append(against_the_best(bench.measure(runs)))
    else:
        notes.append("No rule ships for this model. Only peers are shown.")
    return compare_runs(bench, "calibrated", "The fitted rule and its peers", runs, notes=notes)
