from dataclasses import replace
from time import perf_counter

import pytest
import torch

from starr.model.network.layers import RMSNorm, rope_tables, rotate
from starr.model.network.shape import Shape
from starr.model.network.transformer import KVBuffer, Transformer, read, write

SHAPE = Shape(vocab_size=40, width=32, layers=2, heads=4, kv_heads=2, mlp_width=24)


def test_rms_norm_in_half_precision_is_float32_cast_back_then_scaled():
    norm = RMSNorm(8, 1e-5)
    torch.nn.init.normal_(norm.weight)
    x = torch.randn(3, 8)
    wide = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(norm(x), wide * norm.weight)
    half = RMSNorm(8, 1e-5).to(torch.bfloat16)
    half.weight.data = norm.weight.data.to(torch.bfloat16)
    low = x.to(torch.bfloat16).float()
    expected = (low * torch.rsqrt(low.square().mean(-1, keepdim=True) + 1e-5)).to(torch.bfloat16) * half.weight
    assert torch.equal(half(x.to(torch.bfloat16)), expected)


def test_rope_turns_pairs_of_halves_and_keeps_lengths():
    """Entry j and j + head_width / 2 are one point in the plane, turned by position * theta^(-2j / head_width)."""
    positions = torch.tensor([[0, 3, 50]])
    cos, sin = rope_tables(positions, Shape(9, 12, 1, 2, 2, 8, rope_theta=100.0), torch.float32)
    assert cos.dtype == sin.dtype == torch.float32
    x = torch.randn(1, 2, 3, 6)
    turned = rotate(x, cos, sin)
    point = torch.complex(x[..., :3], x[..., 3:])
    angle = positions[0, :, None] * 100.0 ** -(torch.arange(3) * 2 / 6)
    expected = point * torch.polar(torch.ones_like(angle), angle)
    torch.testing.assert_close(torch.complex(turned[..., :3], turned[..., 3:]), expected)


def test_a_tied_head_is_the_embedding():
    tied = Transformer(Shape(**{name: getattr(SHAPE, name) for name in SHAPE.__slots__} | {"tied": True}))
    assert tied.head_weight is tied.embed.weight
    assert "lm_head.weight" not in dict(tied.named_parameters())
    assert tied.head(torch.zeros(2, 3, 32)).shape == (2, 3, 40)


def test_hidden_states_do_not_depend_on_the_other_rows():
    net = Transformer(SHAPE)
    tokens = torch.randint(0, 40, (4, 9))
    torch.testing.assert_close(net(tokens)[2:3], net(tokens[2:3]), atol=1e-6, rtol=0)


def test_packed_rows_have_the_states_of_padded_ones():
    torch.manual_seed(2)
    net, length = Transformer(SHAPE), torch.tensor([5, 9, 1, 7])
    tokens = torch.randint(0, 40, (4, 9))
    columns = torch.arange(9)
    real = columns < length[:, None]
    with torch.inference_mode():
        packed = net.packed(tokens, real, 22, columns.expand(4, 9))
        torch.testing.assert_close(packed[real], net(tokens, attend=real)[real])
        torch.testing.assert_close(packed[2, :1], net(tokens[2:3, :1])[0])
        some = net.packed(tokens, real, 22, torch.tensor([[4, 0], [8, 3], [0, 9], [6, 9]]))  # 9 is padding
    torch.testing.assert_close(some[:2], packed[[[0, 0], [1, 1]], [[4, 0], [8, 3]]])
    torch.testing.assert_close(some[2:, 0], packed[[2, 3], [0, 6]])


@pytest.mark.parametrize("seen", ["all", "rows", "queries"])
@pytest.mark.parametrize("layers", [1, 3])
def test_wanted_states_are_those_of_a_forward_for_all(seen, layers):
    torch.manual_seed(3)
    net = Transformer(replace(SHAPE, layers=layers))
    tokens, wanted = torch.randint(0, 40, (3, 7)), torch.tensor([[6, 0, 2], [1, 1, 5], [3, 4, 7]])  # 7 is beyond
    length = torch.tensor([7, 6, 5])[:, None]
    rows = torch.arange(7) < length
    queries = rows[:, None] & (torch.rand(3, 7, 7) < 0.7) | torch.eye(7, dtype=torch.bool)
    attend = {"all": None, "rows": rows, "queries": queries}[seen]
    expected = net(tokens, attend=attend).gather(1, wanted.clamp(max=6)[..., None].expand(-1, -1, 32))
    torch.testing.assert_close(net(tokens, attend=attend, wanted=wanted), expected)


def test_queries_that_nobody_wants_still_write_their_keys_and_values():
    torch.manual_seed(4)
    net, tokens = Transformer(SHAPE), torch.randint(0, 40, (2, 6))
    every = torch.arange(6).expand(2, 6)
    buffers = [KVBuffer.empty(SHAPE, 2, 6, net.embed.weight) for _ in range(2)]
    with torch.inference_mode():
        whole = net(tokens, every, buffer=buffers[0])
        some = net(tokens, every, buffer=buffers[1], wanted=torch.tensor([[5], [2]]))
    torch.testing.assert_close(some[:, 0], whole[[0, 1], [5, 2]])
    for part in ("keys", "values"):
        torch.testing.assert_close(getattr(buffers[0], part), getattr(buffers[1], part))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_writing_a_few_slots_costs_the_same_in_a_long_buffer(dtype):
    """A buffer of 100,000 slots is 51 MB in bfloat16: a copy of it takes milliseconds, a write microseconds."""
    slots, new = torch.tensor([[7, 3], [0, 9]]), torch.randn(2, 4, 2, 64).to(dtype)

    def quickest(length):
        kept = torch.zeros(2, 4, length, 64, dtype=dtype)
        taken = []
        for _ in range(20):
            began = perf_counter()
            assert write(kept, slots, new) is kept
            taken.append(perf_counter() - began)
        assert torch.equal(kept[1, :, [0, 9]], new[1])
        assert torch.equal(kept[0, :, [7, 3]], new[0])
        assert torch.equal(read(kept, slots), new.transpose(1, 2))
        assert kept.count_nonzero() <= new.numel()
        return min(taken)

    assert quickest(100_000) < 20 * quickest(16)
