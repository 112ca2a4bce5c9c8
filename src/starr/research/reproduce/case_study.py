"""One token's confidence and threshold under STaRR and under Fast-dLLM's fixed threshold (the paper's case study)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starr.decode.trace import Action
from starr.errors import WorkError
from starr.evals.run.bench import Bench
from starr.research.reproduce.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARR, FIXED = "starr:preset=case_study", "threshold:tau=0.9"
Story = list[dict[str, Any]]


def case_study(bench: Bench) -> Result:
    """The token on which STaRR leads Fast-dLLM by the most steps, among those on which both agree."""
    runs = [bench.run(STARR), bench.run(FIXED)]
    pairs = list(zip(*(bench.traces(run, len(bench.items)) for run in runs), strict=True))
    choices = [
        found for number, (ours, theirs) in enumerate(pairs) if (found := best(number, ours, theirs)) is not None
    ]
    if not choices:
        raise WorkError("No token is committed by both strategies; raise --limit.")
    lead, number, position = max(choices, key=lambda choice: (choice[0], -choice[1], -choice[2]))
    stories = {name: story(trace, position) for name, trace in zip(("STaRR", "Fast-dLLM"), pairs[number], strict=True)}
    trace = pairs[number][0]
    word = trace.pieces.get(trace.tokens[position], "").strip()
    title = f"Case study: {word!r} at position {position} ({bench.task.name}, item {number})"
    rows = [{"method": name, **line} for name, lines in stories.items() for line in lines]
    return Result(
        "case-study", title, rows, lambda figure: draw(figure, stories),
        f"Of {len(pairs)} items, the token that STaRR commits the most steps ({lead}) before the fixed threshold, "
        f"both ending with the same token. Dotted: the step of the last commit.", size=(11.0, 4.8),
        notes=["It is a chosen case, the best one for STaRR here; table1 has all tokens."],
    )  # fmt: skip


def best(number: int, ours: Any, theirs: Any) -> tuple[int, int, int] | None:
    """(steps of lead, item, position) of the text token with the longest lead; None if no final token agrees."""
    first, second = last_commits(ours), last_commits(theirs)
    length = min(ours.stats.tokens, theirs.stats.tokens)
    same = [i for i in range(length) if ours.tokens[i] == theirs.tokens[i] and i in first and i in second]
    return max(((second[i] - first[i], number, i) for i in same), key=lambda c: (c[0], -c[2]), default=None)


def last_commits(trace: Any) -> dict[int, int]:
    """The step at which each position was committed for the last time."""
    return {
        r.window[0] + i: r.step
        for r in trace.steps
        for i, action in enumerate(r.action)
        if action in (Action.COMMIT, Action.REVISE)
    }


def story(trace: Any, position: int) -> Story:
    """Every step that saw the position: confidence (of the most likely token, Eq. 1), threshold, state and action."""
    words = ("keep", "commit", "revoke", "revise")
    lines = []
    for record in trace.steps:
        place = position - record.window[0]
        if not 0 <= place < len(record.confidence) or not record.queried[place]:
            continue
        threshold = None if record.threshold is None else round(record.threshold[place], 4)
        lines.append({
            "step": record.step, "confidence": round(record.best[place], 4), "threshold": threshold,
            "state": "masked" if record.masked[place] else "held", "action": words[record.action[place]],
        })  # fmt: skip
    return lines


def draw(figure: Figure, stories: dict[str, Story]) -> None:
    """Confidence and threshold of both stories over steps."""
    for place, (name, lines) in enumerate(stories.items(), 1):
        axes = figure.add_subplot(1, 2, place)
        steps = [line["step"] for line in lines]
        axes.plot(steps, [line["confidence"] for line in lines], marker=".", label="confidence")
        axes.plot(steps, [line["threshold"] for line in lines], marker=".", label="threshold")
        commits = [line["step"] for line in lines if line["action"] == "commit"]
        if commits:
            axes.axvline(commits[-1], linestyle=":", color="black")
        axes.set_title(f"{name}: committed at step {commits[-1] if commits else '–'}", fontsize=10)
        axes.set_xlabel("step")
        axes.set_ylabel("confidence and threshold")
        axes.legend(fontsize=8)
