"""What is compared with whose rule. Commits are those at which the released code was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import starr
from starr.decode.strategies.ids import parse_ids
from tests.decode.strategies.stateless import Stateless
from tests.reference import ref_baselines as base
from tests.reference.conformance import Case
from tests.reference.loops import Loop, Reach, by_rule, dream, llada
from tests.reference.ref_adablock import RefAdaBlock
from tests.reference.ref_credit import RefCredit
from tests.reference.ref_daedal import RefDaedal
from tests.reference.ref_eb import RefEntropyBound
from tests.reference.ref_edit import edit
from tests.reference.ref_hierarchy import hierarchy
from tests.reference.ref_klass import RefKlass
from tests.reference.ref_localleap import localleap
from tests.reference.ref_pc import RefPC, frequencies
from tests.reference.ref_r2 import RefR2
from tests.reference.ref_remdm_llada import RefReMDMForLLaDA
from tests.reference.ref_saber import RefSaber
from tests.reference.ref_slowfast import RefSlowFast
from tests.reference.ref_tacg import RefTacg
from tests.reference.ref_wino import RefWino
from tests.reference.special_loops import CachedLoop, ShadowLoop, SmoothedLoop, early, editing, growing, moving_end


def rule(make, distribution: bool = False, back: bool = False, ahead: bool = False):
    """A loop that drives a slow transcription."""

    def run(loop: Loop, block: int) -> None:
        by_rule(loop, make(), Reach(block, back, ahead), 10 * loop.length, distribution)

    return run


def of_llada(steps: Callable[[int], int]):
    return lambda loop, block: llada(loop, steps(loop.length), block)


def of_dream(score: str, share: int):
    return lambda loop, block: dream(loop, loop.length // share, score)


def of_pc(loop: Loop, block: int) -> None:
    equally = frequencies([1] * loop.model.spec.shape.vocab_size)
    by_rule(loop, RefPC(equally, 0.25, 10.0, None), Reach(block), 10 * loop.length)


def of_adablock(form: str):
    def run(loop: Loop, block: int) -> None:
        bound = starr.strategy(form).bind(loop.model)
        ends = parse_ids(bound.delimiters, "adablock: delimiters")
        moving_end(loop, RefAdaBlock(bound.tau, bound.delimiter_tau, bound.share, bound.block, ends))

    return run


def of_daedal(form: str):
    return lambda loop, block: growing(loop, RefDaedal(starr.strategy(form), loop.ends))


def of_edit(tau: float, other: float):
    return lambda loop, block: editing(loop, Stateless(edit, tau=tau, edit=other), block)


def options_of(form: str) -> dict:
    return asdict(starr.strategy(form))


EMPTY = "its code spends forwards on steps that commit nothing; ours commits one there, and so does the loop"
LLADA = "LLaDA's code (41760b9), arXiv:2502.09992"
DREAM = "Dream's code (published with its weights), arXiv:2508.15487"
FAST = "Fast-dLLM's code (f6b35ec), arXiv:2505.22618"
DINFER = "dInfer's code (b813f32), arXiv:2510.08666"
PC = "PC-Sampler's code (6c66276), arXiv:2508.13021"
REMDM = "PC-Sampler's code (7f6072e), a deterministic form of arXiv:2503.00307"
EDIT = "LLaDA2.1's rule, as dllm's sampler has it"
DKV = "dKV-Cache's code, arXiv:2505.15781"
FAST_RULE, LLADA_RULE = rule(lambda: base.RefThreshold(0.9)), of_llada(lambda n: n)
GROWING = "daedal:most=96,block=32"

CASES = (
    Case("confidence", None, of_llada(lambda n: n), LLADA),
    Case("confidence", 32, of_llada(lambda n: n), LLADA),
    Case("confidence:schedule=llada,steps={half}", 32, of_llada(lambda n: n // 2), LLADA),
    Case("confidence:schedule=dream,steps={half}", None, of_dream("confidence", 2), DREAM, EMPTY),
    Case("margin:schedule=dream,steps={half}", None, of_dream("margin", 2), DREAM, EMPTY),
    Case("entropy:steps={half}", None, of_dream("entropy", 2), DREAM, EMPTY),
    Case("entropy", None, of_dream("entropy", 1), DREAM, EMPTY),
    Case("threshold", None, FAST_RULE, FAST),
    Case("threshold", 32, FAST_RULE, FAST),
    Case("threshold", 32, FAST_RULE, FAST, cache="prefix", loop=partial(CachedLoop, cache="prefix"), shifted=False),
    Case("threshold", 32, FAST_RULE, FAST, cache="dual", loop=partial(CachedLoop, cache="dual"), shifted=False),
    Case(
        "threshold", None, FAST_RULE, DINFER, "dInfer's weight rises from 0.15 to 0.3, and its bar falls from 1",
        smoothing=0.3, loop=partial(SmoothedLoop, weight=0.3),
    ),
    Case("confidence", 32, LLADA_RULE, DKV, cache="dkv", loop=partial(CachedLoop, cache="dkv"), shifted=False),
    Case(
        "factor", 32, rule(lambda: base.RefFactor(1.0, False)), "Fast-dLLM's paper, arXiv:2505.22618",
        "its code commits a failing last rank too: factor:bug_compatible=true",
    ),
    Case(
        "eb", None, rule(lambda: RefEntropyBound(0.1, "nats", "entropy")),
        "PC-Sampler's code (6c66276) for arXiv:2505.24857",
    ),
    Case("pc", 32, of_pc, PC),
    Case(
        "dus", 32, rule(lambda: base.RefDus(2, 0.3)), "DUS's code (c917168), arXiv:2506.19037",
        "its code never comes back to positions that it skipped; ours, and the loop, add them to the next level",
    ),
    Case(
        "localleap", 32, rule(lambda: Stateless(localleap, tau=0.9, relaxed=0.75, radius=4)),
        "DAWN's code for LocalLeap (7dc269b)",
    ),
    Case("r2", 32, rule(lambda: RefR2(**options_of("r2"))), "R2-dLLM's code (f33dfcf), arXiv:2604.18995"),
    Case(
        "klass", 32, rule(lambda: RefKlass(0.6, 0.015, 2, "all", 1), distribution=True, ahead=True),
        "KLASS's code (8c59d01), arXiv:2511.05664",
    ),
    Case(
        "credit", 32, rule(lambda: RefCredit(0.9, 0.7, 0.8, 0.2), distribution=True),
        "dInfer's code (b813f32) for arXiv:2510.06133",
    ),
    Case(
        "tacg", 32, rule(lambda: RefTacg(**options_of("tacg")), distribution=True),
        "TACG's code (86110cb), arXiv:2607.03236",
    ),
    Case(
        "slowfast", None, rule(lambda: RefSlowFast(**options_of("slowfast"))), "SlowFast's code, arXiv:2506.10848",
    ),
    Case("adablock", None, of_adablock("adablock"), "AdaBlock's code (491b205), arXiv:2509.26432"),
    Case(
        GROWING, None, of_daedal(GROWING), "DAEDAL's code, arXiv:2508.00819",
        "ours, and the loop, count held end-of-texts as certain; where the canvas is as long as may be, its code "
        "spends one forward more, and cuts the end off where ours inserts fewer masks",
    ),
    Case(
        "confidence", None, lambda loop, block: early(loop, 40, 5), "Prophet's code, arXiv:2508.19982",
        "in blocks ours commits what lies after the open one with one forward more", stop="prophet:start=40,length=5",
    ),
    Case(
        "wino", 32, rule(lambda: RefWino(0.6, 0.9, 0.7, 5, 20)), "WINO's code (84964c7), arXiv:2507.18578",
        loop=ShadowLoop,
    ),
    Case(
        "saber", 32, rule(lambda: RefSaber(2, 8), back=True), "Saber's code (49579a9), arXiv:2510.18165",
        "where fewer than n masks are left its code commits positions after the block; ours, and the loop, do not",
    ),
    Case(
        "hierarchy", 32, rule(lambda: Stateless(hierarchy, tau=0.9, low=0.4, revoke=False, revoke_below=0.4)), DINFER,
    ),
    Case(
        "hierarchy:revoke=true", 32,
        rule(lambda: Stateless(hierarchy, tau=0.9, low=0.4, revoke=True, revoke_below=0.4)), DINFER,
    ),
    Case("remdm_llada", None, rule(lambda: RefReMDMForLLaDA(0.875, 32)), REMDM),
    Case("edit", None, of_edit(0.95, 0.9), EDIT),
    Case("edit", 32, of_edit(0.95, 0.9), EDIT),
)  # fmt: skip
