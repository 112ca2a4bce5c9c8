"""Trains the bundled model with LLaDA's objective: ``python -m training.train --tokenizer DIR --out DIR``.

The schedule runs on wall-clock time, so a run always ends decayed at its time, whatever the machine; ``--resume``
continues from ``OUT/last.safetensors`` with the time already used, ``--weights`` begins with a model's weights. Ctrl-C
and SIGTERM end a run after its step, saved.
Every log line is one JSON object in ``OUT/log.jsonl``; a bar shows the time left and the loss.
"""

from __future__ import annotations

import argparse
import copy
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer
from torch import Tensor, nn

from starr.errors import InputError
from starr.model.load import load
from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer
from training import heldout
from training.attention import trainable
from training.blocks import BLOCK, mask_blocks, masked_states
from training.checkpoint import FILE, Run
from training.data import Mix, RowSource, batches
from training.noise import Batch, mask_tokens
from training.optimizer import Muon, average, split_parameters
from training.tokenizer import MASK

LOG_STEPS = 20
FORMATS = ("llada", "dream", "sdar")


@dataclass(frozen=True)
class Options:
    tokenizer: Path
    out: Path
    minutes: float = 180.0
    seed: int = 0
    weights: Path | None = None
    format: str = "llada"
    lr: float = 2.5e-3
    tokens_per_step: int = 4096
    warmup_steps: int = 200
    decay_share: float = 0.3
    ema: float = 0.997
    clip: float = 1.0
    save_minutes: float = 5.0
    check_minutes: float = 15.0
    check_count: int = 6
    compile: bool = True
    bfloat16: bool = True
    resume: bool = False
    mix: Mix = field(default_factory=Mix)


@dataclass(frozen=True)
class Noise:
    """What a loss needs besides weights and data."""

    mask_id: int
    generator: torch.Generator
    bfloat16: bool
    shift: bool
    block: int | None  # block-causal attention in blocks of this length


def bundled_shape(tokenizer: Tokenizer, form: str = "llada") -> Shape:
    """5.3 M parameters; the vocabulary is rounded up to a multiple of 64.

    Dream has q/k/v biases; SDAR norms its query and key heads and rotates them in the model's dtype.
    """
    vocab = -(-tokenizer.get_vocab_size() // 64) * 64
    shape = Shape(vocab, width=256, layers=6, heads=4, kv_heads=4, mlp_width=704, max_length=1024)
    return replace(shape, qkv_bias=form == "dream", qk_norm=form == "sdar", rope_float32=form != "sdar")


def start(shape: Shape, options: Options) -> Run:
    torch.manual_seed(options.seed)
    model = trainable(shape)
    for name, param in model.named_parameters():
        if param.dim() == 2:
            nn.init.normal_(param, std=0.02 if "proj" not in name else param.shape[1] ** -0.5 * 0.5)
        elif name.endswith("bias"):
            nn.init.zeros_(param)
    if options.weights:
        model.load_state_dict(known_weights(options.weights, model))
    matrices, rest = split_parameters(model)
    dtype = torch.bfloat16 if options.bfloat16 else torch.float32
    adam = torch.optim.AdamW(rest, lr=options.lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    run = Run(model, copy.deepcopy(model), [Muon(matrices, options.lr, dtype), adam])
    if options.resume and (options.out / FILE).exists():
        run.restore(options.out / FILE)
    return run


def known_weights(folder: Path, model: Transformer) -> dict[str, Tensor]:
    """The weights of a model folder in float32; biases that it lacks stay those of ``model``.

    Norms of query and key heads that it lacks keep the size that queries and keys have without them, about.
    """
    known = load(folder, dtype="float32").net.state_dict()
    lacking = model.state_dict().keys() - known.keys()
    for norm in (name for name in lacking if name.endswith(("q_norm.weight", "k_norm.weight"))):
        layer, _, part = norm.removesuffix("_norm.weight").rpartition(".attention.")
        gain = known[f"{layer}.input_norm.weight"]
        size = (known[f"{layer}.attention.{part}_proj.weight"] * gain).square().sum(1).mean().sqrt()
        known[norm] = size.expand(model.shape.head_width)
    return model.state_dict() | known


def rate(run: Run, options: Options) -> float:
    """Share of the peak learning rate: warm-up in steps, then flat, then linear to zero at the end of the time."""
    left = 1.0 - run.seconds / (60.0 * options.minutes)
    return max(0.0, min(1.0, (run.step + 1) / options.warmup_steps, left / options.decay_share))


def loss_of(trunk: nn.Module, run: Run, batch: Batch, noise: Noise) -> Tensor:
    """Mean over rows of the mean cross-entropy over the row's masked tokens; the head sees masked positions only.

    Where logits are shifted (Dream), the state before a mask predicts it; a row's first token is never masked.
    A block-causal model sees clean and noised tokens side by side, and each block has masks of its own.
    """
    if noise.block is None:
        noised, masked, weight = mask_tokens(batch, noise.mask_id, noise.generator)
    else:
        noised, masked, weight = mask_blocks(batch, noise.mask_id, noise.block, noise.generator)
    with torch.autocast("cpu", torch.bfloat16, enabled=noise.bfloat16):
        if noise.block is not None:
            states = masked_states(trunk, batch.tokens, noised, masked, noise.block)
        else:
            hidden = trunk(noised)
            states = hidden[:, :-1][masked[:, 1:]] if noise.shift else hidden[masked]
        logits = run.model.head(states)
    losses = F.cross_entropy(logits.float(), batch.tokens[masked], reduction="none")
    return (losses * weight[masked]).sum() / len(noised)


def update(run: Run, loss: Tensor, options: Options) -> None:
    loss.backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), options.clip)
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = options.lr * rate(run, options)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    average(run.ema, run.model, run.step, options.ema)


def stepper(run: Run, tokenizer: Tokenizer, options: Options) -> Callable[[], float]:
    """What makes a step and returns its loss. A resumed run draws other problems and masks than the one before it."""
    trunk = torch.compile(run.model, dynamic=True) if options.compile else run.model
    generator = torch.Generator().manual_seed(options.seed + run.step)
    block = BLOCK if options.format == "sdar" else None
    noise = Noise(tokenizer.token_to_id(MASK), generator, options.bfloat16, options.format == "dream", block)
    source = RowSource(tokenizer, options.seed + run.step, mixture(options), longer=block is None)
    stream = batches(source, options.tokens_per_step)

    def step() -> float:
        batch = next(stream)
        loss = loss_of(trunk, run, batch, noise)
        update(run, loss, options)
        run.step, run.tokens = run.step + 1, run.tokens + batch.tokens.numel()
        return loss.item()

    return step


def mixture(options: Options) -> Mix:
    """A block-causal model sees no text behind a mask, so templates and holes would only teach it to guess."""
    return replace(options.mix, templates=0.0, holes=0.0) if options.format == "sdar" else options.mix


def train(options: Options) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    run = start(bundled_shape(tokenizer, options.format), options)
    step, stopped = stepper(run, tokenizer, options), asked_to_stop()
    saved = checked = run.seconds
    losses: list[float] = []
    clock = time.monotonic()
    with bar(60.0 * options.minutes) as show:
        while run.seconds < 60.0 * options.minutes and not stopped.is_set():
            losses.append(step())
            now = time.monotonic()
            run.seconds, clock = run.seconds + now - clock, now
            if run.step % LOG_STEPS == 0:
                loss = sum(losses) / len(losses)
                log(options, run, {"loss": loss, "rate": rate(run, options)})
                show(run.seconds, f"loss {loss:.3f}, {run.tokens / 1e6:.1f} M tokens")
                losses.clear()
            if run.seconds - checked > 60.0 * options.check_minutes:
                log(options, run, heldout.check(run.ema, tokenizer, options.check_count, options.format))
                checked = run.seconds
            if run.seconds - saved > 60.0 * options.save_minutes:
                run.save(options.out / FILE)
                saved = run.seconds
    run.save(options.out / FILE)
    if not stopped.is_set():
        log(options, run, heldout.check(run.ema, tokenizer, options.check_count, options.format) | {"done": True})


@contextmanager
def bar(seconds: float) -> Iterator[Callable[[float, str], None]]:
    """A bar over the run's time, on a terminal; yields what to call with the time so far and a text."""
    columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task("starting", total=seconds)
        yield lambda done, text: shown.update(task, completed=done, description=text)


def asked_to_stop() -> threading.Event:
    """Set by the first Ctrl-C or SIGTERM; a second one ends the process at once."""
    stopped = threading.Event()

    def ask(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    return stopped


def log(options: Options, run: Run, values: dict[str, Any]) -> None:
    line = {"step": run.step, "tokens": run.tokens, "seconds": round(run.seconds, 1), **values}
    with (options.out / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def mix(text: str) -> Mix:
    """Weights given as ``name=number,…``; the others keep their defaults."""
    try:
        pairs = dict(part.split("=") for part in text.split(","))
        return Mix(**{name: float(weight) for name, weight in pairs.items()})
    except (TypeError, ValueError) as error:
        raise InputError(f"A mix is name=number,…, got {text!r} ({error}).", param="mix") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", type=Path, help="begin with the weights of this model folder")
    parser.add_argument("--format", choices=FORMATS, default="llada", help="dream: biases, shifted; sdar: in blocks")
    parser.add_argument("--lr", type=float, default=2.5e-3, help="highest learning rate")
    parser.add_argument("--warmup-steps", type=int, default=200)
    parser.add_argument("--decay-share", type=float, default=0.3, help="share of the time in which the rate falls")
    parser.add_argument("--mix", type=mix, default=Mix(), help="weights of the kinds of rows, e.g. long=20,latin=9")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--float32", dest="bfloat16", action="store_false", help="for machines without bfloat16")
    train(Options(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
