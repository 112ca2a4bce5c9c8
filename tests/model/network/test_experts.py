"""Routed experts against a loop over tokens, word for word."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.model.network.experts import Experts, close_groups, route
from starr.model.network.layers import MLP
from starr.model.network.shape import Routing

SOFTMAX = Routing(experts=8, chosen=3, width=12)
SIGMOID = Routing(
    experts=16, chosen=4, width=12, router="sigmoid", normalised=True, scale=2.5, bias=True, groups=4, open_groups=2
)


def best(scores: list[float], count: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda e: (-scores[e], e))[:count]


def chosen_by(logits: list[float], bias: list[float], routing: Routing) -> list[tuple[int, float]]:
    """One token's experts and their weights."""
    if routing.router == "softmax":
        total = sum(math.exp(value) for value in logits)
        score = [math.exp(value) / total + extra for value, extra in zip(logits, bias, strict=True)]
        choice = score
    else:
        score = [1 / (1 + math.exp(-value)) for value in logits]
        choice = [value + extra for value, extra in zip(score, bias, strict=True)]
        size = routing.experts // routing.groups
        groups = [choice[g * size : (g + 1) * size] for g in range(routing.groups)]
        opened = best([sum(sorted(group)[-2:]) for group in groups], routing.open_groups)
        choice = [value if e // size in opened else -math.inf for e, value in enumerate(choice)]
    experts = best(choice, routing.chosen)
    total = sum(score[e] for e in experts) if routing.normalised else 1.0
    return [(e, score[e] / total * routing.scale) for e in experts]


@pytest.mark.parametrize("routing", [SOFTMAX, SIGMOID], ids=["softmax", "sigmoid"])
@pytest.mark.parametrize("shared", [False, True])
def test_equals_a_loop_over_tokens(routing, shared):
    torch.manual_seed(1)
    layer = Experts(10, routing, MLP(10, 6) if shared else None)
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias, mean=-1.0)  # whole groups are negative
    x = torch.randn(3, 7, 10)
    with torch.no_grad():
        got = layer(x)
        for row, place in ((0, 0), (1, 3), (2, 6)):
            token = x[row, place]
            bias = [0.0] * routing.experts if layer.bias is None else layer.bias.tolist()
            expected = torch.zeros(10)
            for e, weight in chosen_by((layer.router @ token).tolist(), bias, routing):
                gate, up = layer.gate_proj[e] @ token, layer.up_proj[e] @ token
                expected += weight * (layer.down_proj[e] @ (gate * torch.sigmoid(gate) * up))
            expected += layer.shared(token) if shared else 0
            torch.testing.assert_close(got[row, place], expected, atol=1e-5, rtol=0)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0]), min_size=16, max_size=16), min_size=1, max_size=4))
def test_ties_go_to_the_lower_expert_and_negative_groups_are_not_preferred_to_closed_ones(rows):
    """Scores from a short list tie often; with a bias of -3 every choice score is negative, closed groups are -inf."""
    logits, bias = torch.tensor(rows), torch.full((16,), -3.0)
    chosen, weight = route(logits, torch.eye(16), bias, SIGMOID)
    for t, row in enumerate(rows):
        expected = chosen_by(row, bias.tolist(), SIGMOID)
        assert chosen[t].tolist() == [e for e, _ in expected]
        assert weight[t].tolist() == pytest.approx([w for _, w in expected], abs=1e-6)


def test_one_group_is_no_limit():
    scores = torch.randn(5, 8)
    assert torch.equal(close_groups(scores, SOFTMAX), scores)


def test_a_softmax_bias_is_part_of_the_weights():
    routing = Routing(experts=4, chosen=2, width=3, bias=True)
    chosen, weight = route(torch.zeros(1, 4), torch.eye(4), torch.tensor([0.0, 0.5, 0.0, 0.25]), routing)
    assert chosen.tolist() == [[1, 3]]
    assert weight.tolist() == [[0.75, 0.5]]


def test_a_token_gives_the_same_alone_and_in_company():
    torch.manual_seed(2)
    layer = Experts(10, SIGMOID, None)
    x = torch.randn(4, 9, 10)
    with torch.no_grad():
        torch.testing.assert_close(layer(x)[2:3, 4:5], layer(x[2:3, 4:5]), atol=1e-6, rtol=0)
