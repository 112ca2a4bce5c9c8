"""Strategies on masked models that nobody here trained: `python -m benchmarks.outside --out docs/results`.

``reactions``: the model of the package rxnmapper fills the package's own example reactions, parts of which are masked;
the truth is known, so a text is right or not. ``chains``: the model of antiberty writes whole antibody chains from
their first residues, at temperature 1; there is no truth, so each chain is scored by the model's own leave-one-out
likelihood. Every sample is kept beside the models in a cache, and the same command goes on where it was interrupted.
Where the package has the option ``verify``, every strategy is decoded with and without it.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import torch

import starr
from benchmarks.outside_models import ANTIBERTY, RXNMAPPER, cache_folder, model_folder, reactions
from benchmarks.stored import Stored
from starr.errors import InputError
from starr.evals.stats import bootstrap
from starr.options import Options
from starr.research.reproduce import context

LONGEST = 160  # tokens of a reaction that fits
LENGTHS = (108, 114, 120, 126)  # residues of a chain
STARTS = ("EVQ", "QVQ", "DIQ", "EIV")  # how chains begin
BASE = "confidence"  # one position per step: what the others are compared with
VERIFY = 0.3
FEW = ("confidence", "threshold", "threshold:tau=0.99", "starr", "eb", "klass", "wino", "saber", "remdm")
NOTES = {
    "reactions": (
        "The model is ALBERT with 0.7 million parameters, trained by others to fill masks in reactions; the truth may "
        "have been in its training. A masked atom often has several valid fillings, of which one counts.",
        "exact: the whole text is the true one. tokens: masked tokens that are. Intervals are 95 %, by a bootstrap "
        "over reactions; differences are paired to one position per step over the same masks.",
        "What it shows: how the rules rank on a model and a task that this project did not make. What it does not "
        "show: anything about chat models, long answers, or chemistry.",
    ),
    "chains": (
        "The model is BERT with 26 million parameters. Chains are written at temperature 1 from three residues on.",
        "likelihood: the mean natural logarithm of the model's probability of each residue, all others given. The same "
        "model wrote and judges: a high value says that the residues agree with each other, not that a chain folds.",
        "distinct: the share of all chains of a row that are different.",
    ),
}


@dataclass(frozen=True)
class Way:
    """A strategy, and from which leave-one-out probability on a token is kept; 0 verifies nothing."""

    strategy: str
    verify: float = 0.0

    @property
    def options(self) -> dict[str, Any]:
        return {"strategy": self.strategy} | ({"verify": self.verify} if self.verify else {})


@dataclass(frozen=True)
class Job:
    """A text to fill, and where it belongs."""

    kind: str
    share: float
    seed: int
    item: int
    text: str
    truth: str = ""


@dataclass(frozen=True)
class Filled:
    """What came out of a job."""

    strategy: str
    verify: float
    share: float
    seed: int
    item: int
    text: str
    exact: bool
    right: int
    masked: int
    likelihood: float
    forwards: int
    positions: int

    @property
    def key(self) -> tuple[Any, ...]:
        return self.strategy, self.verify, self.share, self.seed, self.item


def masked_text(pieces: Sequence[str], share: float, draw: Random) -> str:
    """A text with a share of its tokens, at least one, as holes."""
    count = max(1, round(share * len(pieces)))
    holes = set(draw.sample(range(len(pieces)), count))
    parts = []
    for hole, run in groupby(range(len(pieces)), holes.__contains__):
        places = list(run)
        parts.append(f"[MASK:{len(places)}]" if hole else "".join(pieces[place] for place in places))
    return "".join(parts)


def reaction_jobs(model: Any, texts: Sequence[str], limit: int, shares: Sequence[float], seeds: int) -> list[Job]:
    """The first reactions that fit, each masked in every share with every seed."""
    read, jobs = model.tokenizer, []
    cut = {text: [read.piece(token) for token in read.encode(text)] for text in texts}
    fit = [text for text, pieces in cut.items() if len(pieces) <= LONGEST and "".join(pieces) == text]
    for item, text in enumerate(fit[:limit]):
        for share in shares:
            for seed in range(seeds):
                draw = Random(f"{item} {share} {seed}")
                jobs.append(Job("reactions", share, seed, item, masked_text(cut[text], share, draw), text))
    return jobs


def chain_jobs(limit: int, seeds: int) -> list[Job]:
    """Beginnings of chains by turns, with holes up to a length."""
    pairs = [(start, length) for length in LENGTHS for start in STARTS]
    jobs = []
    for item in range(limit):
        start, length = pairs[item % len(pairs)]
        text = f"{start}[MASK:{length - len(start)}]"
        jobs += [Job("chains", 1.0, seed, item, text) for seed in range(seeds)]
    return jobs


def fill(model: Any, way: Way, jobs: Sequence[Job]) -> Iterator[Filled]:
    """Decode jobs of one seed together, and grade what comes out."""
    sampled = {"temperature": 1.0} if jobs[0].kind == "chains" else {}
    for job, made in zip(jobs, decoded(model, way, jobs, sampled), strict=True):
        own = [token for token in made.tokens if token != model.spec.last_id]
        truth = model.tokenizer.encode(job.truth) if job.truth else []
        wrong = sum(a != b for a, b in zip(own, truth, strict=True)) if truth else 0
        likelihood = 0.0 if truth else leave_one_out(model, own)
        yield Filled(
            way.strategy, way.verify, job.share, job.seed, job.item, made.text, bool(truth) and not wrong,
            made.stats.tokens - wrong, made.stats.tokens, likelihood, made.stats.forwards, made.stats.positions,
        )  # fmt: skip


def decoded(model: Any, way: Way, jobs: Sequence[Job], sampled: Mapping[str, Any]) -> Iterable[Any]:
    """Generations of jobs; those that are sampled have a seed of their own and are decoded one by one."""
    if not sampled:
        return starr.infill(model, [job.text for job in jobs], batch_size=len(jobs), seed=jobs[0].seed, **way.options)
    return [starr.infill(model, job.text, seed=1000 * job.seed + job.item, **sampled, **way.options) for job in jobs]


@torch.inference_mode()
def leave_one_out(model: Any, tokens: Sequence[int]) -> float:
    """The mean log probability of each token, all others given: a row for each, with a mask in its place."""
    spec = model.spec
    row = torch.tensor([*spec.before, *tokens, *spec.behind])
    at = torch.arange(len(tokens)) + len(spec.before)
    rows = row.expand(len(tokens), -1).clone()
    rows[torch.arange(len(tokens)), at] = spec.mask_id
    logits = model.net.head(model.net(rows, wanted=at[:, None])[:, 0]).float()
    return float(logits.log_softmax(dim=1)[torch.arange(len(tokens)), torch.tensor(list(tokens))].mean())


class Samples:
    """Samples of one model in a file of lines, one each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made: dict[tuple[Any, ...], Filled] = {}
        for line in path.read_text(encoding="utf8").splitlines() if path.exists() else []:
            one = Filled(**json.loads(line))
            self.made[one.key] = one

    def add(self, found: Iterable[Filled]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf8") as file:
            for one in found:
                self.made[one.key] = one
                file.write(json.dumps(asdict(one)) + "\n")

    def lacks(self, way: Way, job: Job) -> bool:
        return (way.strategy, way.verify, job.share, job.seed, job.item) not in self.made

    def of(self, way: Way, share: float, limit: int, seeds: int) -> list[Filled]:
        """In the order of items and seeds."""
        keys = ((way.strategy, way.verify, share, seed, item) for item in range(limit) for seed in range(seeds))
        return [self.made[key] for key in keys if key in self.made]


def by_item(samples: Sequence[Filled], name: str) -> list[float]:
    """A figure of each item: the mean over its seeds."""
    found: dict[int, list[float]] = defaultdict(list)
    for one in samples:
        value = one.right / max(1, one.masked) if name == "tokens" else getattr(one, name)
        found[one.item].append(float(value))
    return [mean(values) for values in found.values()]


def told(values: Sequence[float], scale: float, digits: int) -> tuple[float, str]:
    """A mean and its interval."""
    low, high = bootstrap(values)
    return round(scale * mean(values), digits), f"{scale * low:.{digits}f} to {scale * high:.{digits}f}"


def against(samples: Sequence[Filled], base: Sequence[Filled], name: str, scale: float, digits: int) -> str:
    """The paired difference to the base, with its interval; empty for the base itself, or other items."""
    if samples is base or {one.key[2:] for one in samples} != {one.key[2:] for one in base}:
        return ""
    pairs = zip(by_item(samples, name), by_item(base, name), strict=True)
    value, interval = told([a - b for a, b in pairs], scale, digits)
    return f"{value:+.{digits}f} ({interval})"


def row(way: Way, kind: str, samples: Sequence[Filled], base: Sequence[Filled]) -> dict[str, Any]:
    head: dict[str, Any] = {"strategy": way.strategy, "verify": way.verify or ""}
    tail = {
        "forwards": round(mean(by_item(samples, "forwards")), 1),
        "positions": round(mean(by_item(samples, "positions"))),
    }
    if kind == "chains":
        value, interval = told(by_item(samples, "likelihood"), 1, 3)
        texts = [one.text for one in samples]
        figures = {"n": len(texts), "likelihood": value, "95 % interval": interval}
        figures["to one per step"] = against(samples, base, "likelihood", 1, 3)
        return head | figures | {"distinct %": round(100 * len(set(texts)) / len(texts), 1)} | tail
    value, interval = told(by_item(samples, "exact"), 100, 1)
    figures = {
        "masked %": round(100 * samples[0].share),
        "n": len(samples),
        "exact %": value,
        "95 % interval": interval,
    }
    figures |= {"to one per step": against(samples, base, "exact", 100, 1)}
    accuracy = {"tokens %": told(by_item(samples, "tokens"), 100, 1)[0]}
    return head | figures | accuracy | {"tokens to one per step": against(samples, base, "tokens", 100, 1)} | tail


def ways_of(strategies: Sequence[str]) -> list[Way]:
    """Each strategy without verification and, where there is that option, with it; the base first."""
    can = any(field.name == "verify" for field in fields(Options))
    names = list(dict.fromkeys([BASE, *strategies]))
    return [Way(name, verify) for name in names for verify in ((0.0, VERIFY) if can else (0.0,))]


def usable(model: Any, strategies: Sequence[str]) -> list[str]:
    """The strategies that need nothing fitted to the model, or have it; the others are named."""
    found = []
    for name in strategies:
        try:
            starr.strategy(name).bind(model)
            found.append(name)
        except InputError as error:
            print(f"{name} is left out: {error}", flush=True)
    return found


def run(options: argparse.Namespace, kind: str) -> None:
    """Decode what is missing of one kind, and write its page after every strategy."""
    package, cache = (RXNMAPPER if kind == "reactions" else ANTIBERTY), options.cache
    model = starr.load(model_folder(package, cache), dtype="float32")
    if kind == "reactions":
        texts = reactions(cache, options.reactions)
        jobs = reaction_jobs(model, texts, options.limit, options.shares, options.seeds)
    else:
        jobs = chain_jobs(options.chains, options.seeds)
    samples, limit = Samples(cache / f"{kind}.jsonl"), options.limit if kind == "reactions" else options.chains
    name = f"outside-{kind}"
    command = f"python -m benchmarks.outside --only {kind} --seeds {options.seeds}"
    shares = " ".join(map(str, options.shares))
    command += f" --limit {options.limit} --shares {shares}" if kind == "reactions" else f" --chains {options.chains}"
    command += f" --strategies {' '.join(options.strategies)}"
    where = context(command, f"{package.name} {package.version}", kind)
    stored = Stored(name, f"A model from outside: {package.name} ({kind})", f"{name}.md", NOTES[kind])
    strategies = usable(model, options.strategies)
    for way in ways_of(strategies):
        missing = sorted((job for job in jobs if samples.lacks(way, job)), key=lambda job: (job.share, job.seed))
        for _, some in groupby(missing, key=lambda job: (job.share, job.seed)):
            alike = list(some)
            for start in range(0, len(alike), options.rows):
                samples.add(fill(model, way, alike[start : start + options.rows]))
        rows = []
        for share in options.shares if kind == "reactions" else [1.0]:
            found = {w: samples.of(w, share, limit, options.seeds) for w in ways_of(strategies)}
            rows += [row(w, kind, some, found[Way(BASE)]) for w, some in found.items() if some]
        stored.write(options.out, where, rows)
        print(json.dumps([one for one in rows if one["strategy"] == way.strategy][-1]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Strategies on masked models of other people.")
    parser.add_argument("--only", choices=("reactions", "chains"), action="append")
    parser.add_argument("--limit", type=int, default=300, help="reactions")
    parser.add_argument("--chains", type=int, default=48)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.25, 0.5, 0.75], help="of a reaction's tokens")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategies", nargs="+", default=FEW, help="or: all")
    parser.add_argument("--rows", type=int, default=16, help="items decoded at once")
    parser.add_argument("--reactions", type=Path, help="examples/example_rxns.csv of the package's repository")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    if list(options.strategies) == ["all"]:
        options.strategies = [entry.name for entry in starr.strategies()]
    for kind in options.only or ("reactions", "chains"):
        run(options, kind)


if __name__ == "__main__":
    main()
