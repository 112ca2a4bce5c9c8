"""The shadow block: invisible to the row, blind to the token it stands for."""

import pytest
import torch

from starr.decode.extras.shadow import with_shadow
from starr.model.network.layers import Shape
from starr.model.network.transformer import Transformer
from tests.tiny import MASK


def one_layer() -> Transformer:
    """With one layer, a position sees other positions' tokens only: what it does not attend to cannot reach it."""
    torch.manual_seed(0)
    shape = Shape(vocab_size=40, width=16, layers=1, heads=2, kv_heads=2, mlp_width=16)
    net = Transformer(shape).eval().requires_grad_(False)
    for parameter in net.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.5)
    return net


def shadows(net, tokens, shift=False):
    row, window = torch.tensor([[*tokens, 0]]), torch.tensor([[2, 3, 4, 5]])
    masks = torch.full_like(window, MASK)
    return with_shadow(net, row, torch.tensor([6]), window, masks, window, shift=shift)[0].split([4, 4])


def test_the_row_is_as_it_would_be_without_a_shadow():
    net, tokens = one_layer(), [7, 8, 9, 10, 11, 12]
    own, _ = shadows(net, tokens)
    assert torch.allclose(own, net(torch.tensor([tokens]))[0, 2:], atol=1e-6)


@pytest.mark.parametrize("shift", [False, True])
def test_a_shadow_sees_every_token_but_its_own(shift):
    net = one_layer()
    _, before = shadows(net, [7, 8, 9, 10, 11, 12], shift)
    _, after = shadows(net, [7, 8, 9, 30, 11, 12], shift)
    same = [torch.allclose(a, b, atol=1e-6) for a, b in zip(before, after, strict=True)]
    assert same == [False, True, False, False]


def test_where_logits_are_shifted_it_stands_one_position_to_the_left():
    """A mask at position 2 that is blind to column 3, made by hand, is the shadow of column 3."""
    net, tokens = one_layer(), [7, 8, 9, 10, 11, 12]
    _, found = shadows(net, tokens, shift=True)
    sees = torch.ones(1, 10, 10, dtype=torch.bool)
    sees[0, 7, 3] = False
    row = torch.tensor([[*tokens, MASK, MASK, MASK, MASK]])
    by_hand = net(row, torch.tensor([[0, 1, 2, 3, 4, 5, 1, 2, 3, 4]]), attend=sees)[0, 7]
    assert torch.allclose(found[1], by_hand, atol=1e-6)
