import torch

from starr.model.transformer import RMSNorm, Shape, Transformer, rope_tables, rotate

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
    cos, sin = rope_tables(positions, 6, 100.0)
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
    real = torch.arange(9) < length[:, None]
    with torch.inference_mode():
        packed = net.packed(tokens, length, 22)
        torch.testing.assert_close(packed[real], net(tokens, attend=real)[real])
        torch.testing.assert_close(packed[2, :1], net(tokens[2:3, :1])[0])
    assert not packed[~real].any()
