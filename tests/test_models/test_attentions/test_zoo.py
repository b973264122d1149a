"""The papers' attentions as modules: what holds for each, and for one alone.

Legend: B batch, h heads, (H, W) map, N = H * W tokens, C channels.
"""

import math

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from mmlinattn import functional as F
from mmlinattn.analysis import count_flops
from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern

CASES = {
    'softmax': dict(type='SoftmaxAttention', lepe=True),
    'efficient': dict(type='EfficientAttention', lepe=True),
    'efficient-plain': dict(type='EfficientAttention'),
    'performer': dict(type='PerformerAttention', num_features=9, lepe=True),
    'performer-plain': dict(type='PerformerAttention'),
    'focused': dict(type='FocusedLinearAttention'),
    'focused-lepe': dict(
        type='FocusedLinearAttention', focusing_factor=2, kernel_size=3, lepe=True
    ),
    'focused-table': dict(type='FocusedLinearAttention', map_side=5),
    'softmax-shared': dict(type='SoftmaxAttention', shared_qk=True),
    'agent': dict(type='AgentAttention', num_agents=4, map_side=5),
    'agent-dense': dict(type='AgentAttention', num_agents=4, map_side=5, used_agents=9),
    'nystrom': dict(type='NystromAttention', num_landmarks=9),
    'nystrom-plain': dict(type='NystromAttention', num_landmarks=4, lepe=False),
    'linformer': dict(type='LinformerAttention', sr_ratio=2),
    'linformer-1': dict(type='LinformerAttention', sr_ratio=1),
    'cross-shaped': dict(type='CrossShapedWindowAttention', stripe_width=2),
    'cross-shaped-plain': dict(
        type='CrossShapedWindowAttention', stripe_width=3, lepe=False
    ),
    'elfatt': dict(type='ELFATT', block_size=9),
    'elfatt-quarter': dict(type='ELFATT', block_size=4, split_ratio=0.25),
    'elfatt-plain': dict(type='ELFATT', block_size=9, lepe=False),
    'elfatt-mask': dict(type='ELFATT', block_size=9, mask_padding=True),
    'elfatt-global': dict(type='ELFATT', block_size=9, split_ratio=1),
    'elfatt-local': dict(type='ELFATT', block_size=9, split_ratio=0),
}
ALL = pytest.mark.parametrize('name', CASES)
TAKE_EXTRA_TOKENS = (
    'softmax',
    'efficient',
    'efficient-plain',
    'performer',
    'performer-plain',
    'focused',
    'focused-lepe',
    'focused-table',
    'softmax-shared',
    'linformer-1',
)
SIZES = ((5, 7), (1, 1), (1, 6), (9, 3))


def make(name, **options):
    return MODELS.build({'embed_dims': 24, 'num_heads': 4, **CASES[name], **options})


def build(name, **options):
    """A module whose every parameter matters."""
    module = make(name, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def tokens(hw_shape, num_extra=0, batch=2, dtype=torch.float64):
    return torch.randn(batch, num_extra + math.prod(hw_shape), 24, dtype=dtype)


def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def paper_conv(conv, maps):
    """Every channel of maps (B, H, W, C) with its own filter, tap by tap."""
    height, width = maps.shape[1:3]
    half = conv.kernel_size[0] // 2
    padded = nn.functional.pad(maps, (0, 0, half, half, half, half))
    out = conv.bias.expand_as(maps)
    for (i, j), taps in zip(
        torch.cartesian_prod(*[torch.arange(2 * half + 1)] * 2).tolist(),
        conv.weight.flatten(2).squeeze(1).T,
    ):
        out = out + taps * padded[:, i : i + height, j : j + width]
    return out


def paper_lepe(conv, v, hw_shape):
    """LePE of v (B, N, C): none for extra tokens."""
    num_extra = v.size(1) - math.prod(hw_shape)
    maps = v[:, num_extra:].unflatten(1, hw_shape)
    out = paper_conv(conv, maps).flatten(1, 2)
    return torch.cat((torch.zeros_like(v[:, :num_extra]), out), 1)


def paper_lepe_in_blocks(conv, v, hw_shape, block_shape, centered=False):
    """Each block of v (B, N, C) convolved as a map of its own."""
    blocks = F.blockify(v, hw_shape, block_shape, centered)
    blocks = torch.stack(
        [
            paper_conv(conv, block.unflatten(1, block_shape)).flatten(1, 2)
            for block in blocks.unbind(1)
        ],
        1,
    )
    return F.unblockify(blocks, hw_shape, block_shape, centered)


def paper_grid(x, hw_shape, side):
    """Means of x (B, h, N, d) over a grid of cells, cell by cell."""
    maps = x.unflatten(2, hw_shape)
    height, width = hw_shape
    rows, columns = (
        [(length * i // side, -(-length * (i + 1) // side)) for i in range(side)]
        for length in (height, width)
    )
    return torch.stack(
        [
            maps[:, :, top:bottom, left:right].mean((2, 3))
            for top, bottom in rows
            for left, right in columns
        ],
        2,
    )


def paper_agent_bias(bias, hw_shape):

    def resize(x, length):  # (h, n, L) to (h, n, length)
        return nn.functional.interpolate(x, length, mode='linear', align_corners=False)

    height, width = hw_shape
    rows = resize(bias.rows.squeeze(3), height)[..., None]
    columns = resize(bias.columns.squeeze(2), width)[..., None, :]
    table = nn.functional.interpolate(
        bias.table, hw_shape, mode='bilinear', align_corners=False
    )
    out = (table + rows + columns).flatten(2)
    if bias.used_side != bias.stored_side:  # of every token, over the grid of agents
        used = (bias.used_side, bias.used_side)
        grids = [
            nn.functional.interpolate(
                out[..., i].unflatten(-1, (bias.stored_side,) * 2)[None],
                used,
                mode='bilinear',
                align_corners=False,
            )[0]
            for i in range(out.size(-1))
        ]
        out = torch.stack(grids, -1).flatten(1, 2)
    return out


def with_positions(module, k, hw_shape):
    """Keys with focused linear attention's table; extra tokens have no positions."""
    table = nn.functional.interpolate(
        module.pos_embed.table.transpose(1, 2).unflatten(-1, module.pos_embed.hw_shape),
        hw_shape,
        mode='bicubic',
        align_corners=False,
    )
    k = k.clone()
    k[:, k.size(1) - math.prod(hw_shape) :] += table.flatten(2).transpose(1, 2)
    return k


def paper_attention(module, x, hw_shape):
    """Heads by the functions of the equations, which have tests of their own;
    all around them written out."""
    kind = type(module).__name__
    omega = module.omega

    def scale(out, v):
        return out if omega is None else F.attn_scale(out, v, omega)

    def merge(x):
        return x.transpose(1, 2).flatten(2)

    if kind == 'LinformerAttention':
        keys = x
        if module.sr_ratio > 1:
            r, conv = module.sr_ratio, module.reduction
            cells = F.blockify(x, hw_shape, r)  # (B, n, r * r, C)
            keys = module.norm(
                torch.einsum('bnsc,ocs->bno', cells, conv.weight.flatten(2)) + conv.bias
            )
        q = split(module.q(x), 4)
        k, v = (split(part, 4) for part in module.kv(keys).chunk(2, -1))
        out = nn.functional.scaled_dot_product_attention(q, k, v)
        return module.proj(merge(scale(out, v)))

    if module.qkv.out_features == 2 * module.embed_dims:
        q, v = module.qkv(x).chunk(2, -1)
        k = q
    else:
        q, k, v = module.qkv(x).chunk(3, -1)
    if kind == 'CrossShapedWindowAttention':
        outs = []
        for half, stripe in enumerate(
            ((hw_shape[0], module.stripe_width), (module.stripe_width, hw_shape[1]))
        ):
            part = slice(12 * half, 12 * (half + 1))
            heads = [split(t[..., part], 2) for t in (q, k, v)]
            out = merge(
                F.local_attention(
                    *heads,
                    hw_shape,
                    stripe,
                    centered=True,
                    omega=None if omega is None else omega[2 * half : 2 * half + 2],
                )
            )
            if module.lepe is not None:
                out = out + paper_lepe_in_blocks(
                    module.lepe[half], v[..., part], hw_shape, stripe, True
                )
            outs.append(out)
        return module.proj(torch.cat(outs, -1))
    if kind == 'ELFATT':
        c1, c2 = module.half_dims
        h1, h2 = module.half_heads
        outs = []
        if c1:
            heads = [split(t[..., :c1], h1) for t in (q, k, v)]
            out = F.efficient_attention(*heads)
            if omega is not None:
                out = F.attn_scale(out, heads[2], omega[:h1])
            out = merge(out)
            if module.global_lepe is not None:
                out = out + paper_lepe(module.global_lepe, v[..., :c1], hw_shape)
            outs.append(out)
        if c2:
            heads = [split(t[..., c1:], h2) for t in (q, k, v)]
            out = merge(
                F.block_attention(
                    *heads,
                    hw_shape,
                    module.block_size,
                    module.mask_padding,
                    None if omega is None else omega[h1:],
                )
            )
            if module.local_lepe is not None:
                out = out + paper_lepe_in_blocks(
                    module.local_lepe, v[..., c1:], hw_shape, module.block_shape
                )
            outs.append(out)
        return module.proj(torch.cat(outs, -1))

    values = v
    if kind == 'FocusedLinearAttention' and module.pos_embed is not None:
        k = with_positions(module, k, hw_shape)
    q, k, v = (split(t, 4) for t in (q, k, v))
    if kind == 'SoftmaxAttention':
        out = nn.functional.scaled_dot_product_attention(q, k, v)
    elif kind == 'EfficientAttention':
        out = F.efficient_attention(q, k, v)
    elif kind == 'PerformerAttention':
        out = F.performer_attention(q, k, v, module.features)
    elif kind == 'FocusedLinearAttention':
        factors = nn.functional.softplus(module.focus_scale).view(4, 1, 6)
        out = F.focused_linear_attention(q, k, v, module.focusing_factor, factors)
    elif kind == 'AgentAttention':
        out = F.agent_attention(
            q,
            k,
            v,
            paper_grid(q, hw_shape, module.agent_side),
            paper_agent_bias(module.agent_bias, hw_shape)[None],
            paper_agent_bias(module.query_bias, hw_shape)[None].mT,
        )
    else:
        side = module.landmark_side
        if min(hw_shape) >= side:
            landmarks = [paper_grid(t, hw_shape, side) for t in (q, k)]
        else:
            landmarks = [F.blockify(t, hw_shape, 1).mean(-2) for t in (q, k)]
        out = F.nystrom_attention(q, k, v, *landmarks)
    out = merge(scale(out, v))
    if kind == 'FocusedLinearAttention':
        out = out + torch.cat(
            [
                paper_lepe(module.local_conv, head, hw_shape)
                for head in values.split(6, -1)
            ],
            -1,
        )
    if module.lepe is not None:
        out = out + paper_lepe(module.lepe, values, hw_shape)
    return module.proj(out)


@pytest.mark.parametrize('attn_scale', (False, True))
@pytest.mark.parametrize('hw_shape', ((5, 7), (6, 4), (1, 1)), ids=str)
@ALL
def test_matches_the_paper(name, hw_shape, attn_scale):
    module = build(name, attn_scale=attn_scale).double()
    x = tokens(hw_shape)
    torch.testing.assert_close(
        module(x, hw_shape), paper_attention(module, x, hw_shape)
    )


@pytest.mark.parametrize('num_extra', (1, 3))
@pytest.mark.parametrize('name', TAKE_EXTRA_TOKENS)
def test_extra_tokens(name, num_extra):
    module = build(name, attn_scale=True).double()
    x = tokens((3, 5), num_extra)
    torch.testing.assert_close(module(x, (3, 5)), paper_attention(module, x, (3, 5)))


@pytest.mark.parametrize(
    'num_tokens, hw_shape, message',
    (
        (16, (3, 5), r'N=16.*\(3, 5\)'),
        (15, (4, 5), r'N=15.*\(4, 5\)'),
        (0, (0, 5), r'empty.*\(0, 5\)'),
    ),
)
@pytest.mark.parametrize(
    'name', [name for name in CASES if name not in TAKE_EXTRA_TOKENS]
)
def test_attentions_bound_to_the_map(name, num_tokens, hw_shape, message):
    with pytest.raises(ValueError, match=message):
        make(name)(torch.randn(1, num_tokens, 24), hw_shape)


@pytest.mark.parametrize('hw_shape', ((4, 4), (0, 4)))
@pytest.mark.parametrize('name', ('softmax', 'focused'))
def test_convolutions_need_the_map(name, hw_shape):
    with pytest.raises(ValueError, match=r'hw_shape.*N=15'):
        make(name)(torch.randn(1, 15, 24), hw_shape)


@pytest.mark.parametrize('hw_shape', SIZES, ids=str)
@ALL
def test_an_image_does_not_see_its_neighbors(name, hw_shape):
    module = build(name, attn_scale=True).double()
    x = tokens(hw_shape, batch=3)
    x[1] = x[1, :1]  # a flat image
    x[2] *= 30
    together = module(x, hw_shape)
    assert together.shape == x.shape and together.isfinite().all()
    for i in range(3):
        torch.testing.assert_close(together[i : i + 1], module(x[i : i + 1], hw_shape))


@ALL
def test_every_parameter_learns(name):
    module = build(name, attn_scale=True).train()
    x = tokens((5, 7), dtype=torch.float32)
    (module(x, (5, 7)) * torch.randn_like(x)).sum().backward()
    for key, parameter in module.named_parameters():
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.any(), key


@ALL
def test_gradcheck(name):
    module = build(name, attn_scale=True).double()
    x = tokens((3, 4), batch=1).requires_grad_()
    assert gradcheck(lambda x: module(x, (3, 4)), x, fast_mode=True)


@ALL
def test_attn_scale_is_the_identity_at_start(name):
    plain, scaled = build(name), make(name, attn_scale=True)
    missing, unexpected = scaled.load_state_dict(plain.state_dict(), False)
    assert missing == ['omega'] and not unexpected
    x = tokens((5, 7), dtype=torch.float32)
    torch.testing.assert_close(scaled(x, (5, 7)), plain(x, (5, 7)))


@ALL
def test_no_biases(name):
    module = make(name, qkv_bias=False)
    projections = (module.q, module.kv) if hasattr(module, 'kv') else (module.qkv,)
    assert all(projection.bias is None for projection in projections)
    assert module.proj.bias is not None


@ALL
def test_half_precision_under_autocast(name):
    module = build(name, attn_scale=True)
    x = tokens((9, 10), dtype=torch.float32)
    expected = module(x, (9, 10))
    with torch.autocast('cpu', torch.bfloat16):
        out = module(x, (9, 10))
    assert (out - expected).norm() < 0.05 * expected.norm()


@pytest.mark.parametrize('name', ('softmax', 'linformer', 'cross-shaped'))
def test_dropout_only_in_training(name):
    module = build(name, attn_drop=0.5)
    x = tokens((5, 7), dtype=torch.float32)
    assert module(x, (5, 7)).equal(module(x, (5, 7)))
    module.train()
    assert not module(x, (5, 7)).equal(module(x, (5, 7)))


def flops(name, side):
    with torch.device('meta'):
        module = make(name)
        x = torch.zeros(1, side**2, 24)
    return count_flops(module, x, (side, side)).total()


LINEAR = [
    name
    for name in CASES
    if not name.startswith(('softmax', 'linformer', 'cross-shaped'))
]


@ALL
def test_cost(name):
    """Four times the tokens, four times the cost or less; what the attentions
    do with their landmarks or agents alone does not grow at all."""
    small, large = flops(name, 36), flops(name, 72)
    assert (large <= 4 * small) == (name in LINEAR)


@pytest.mark.parametrize('name', ('efficient-plain', 'performer-plain'))
def test_without_positions_order_does_not_matter(name):
    module = build(name).double()
    x = tokens((5, 7))
    order = torch.randperm(35)
    torch.testing.assert_close(module(x[:, order], (5, 7)), module(x, (5, 7))[:, order])


def changed_positions(module, hw_shape, y, x):
    """Where the output changes with the input at (y, x)."""
    inputs = tokens(hw_shape, batch=1)
    changed = inputs.clone()
    changed.unflatten(1, hw_shape)[:, y, x] += 1
    difference = module(inputs, hw_shape) != module(changed, hw_shape)
    return difference.any(-1).view(hw_shape)


@pytest.mark.parametrize('lepe', (False, True))
def test_blocks_are_local(lepe):
    module = build('elfatt-local', lepe=lepe).double()
    expected = torch.zeros(7, 8, dtype=torch.bool)
    expected[3:6, 6:] = True
    assert changed_positions(module, (7, 8), 5, 6).equal(expected)


def test_stripes_make_a_cross():
    expected = torch.zeros(6, 8, dtype=torch.bool)
    expected[2:4] = True
    expected[:, 6:] = True
    module = build('cross-shaped').double()
    assert changed_positions(module, (6, 8), 3, 6).equal(expected)


@pytest.mark.parametrize('split_ratio, whole', ((1, 'efficient'), (0, 'softmax')))
def test_ends_of_the_split(split_ratio, whole):
    """All global: efficient attention; all local, on a map of one block:
    softmax attention."""
    elfatt = build('elfatt', block_size=36, split_ratio=split_ratio)
    other = make(whole)
    renamed = {
        key.replace('global_', '').replace('local_', ''): value
        for key, value in elfatt.state_dict().items()
    }
    other.load_state_dict(renamed)
    x = tokens((6, 6), dtype=torch.float32)
    torch.testing.assert_close(elfatt(x, (6, 6)), other(x, (6, 6)))


@pytest.mark.parametrize(
    'embed_dims, num_heads, split_ratio, dims, heads',
    (
        (96, 3, 0.5, (48, 48), (1, 1)),
        (96, 1, 0.5, (48, 48), (1, 1)),
        (64, 4, 0.25, (16, 48), (2, 2)),
        (64, 4, 0.75, (48, 16), (2, 2)),
        (96, 3, 0, (0, 96), (0, 3)),
        (96, 3, 1, (96, 0), (3, 0)),
    ),
)
def test_heads_of_the_halves(embed_dims, num_heads, split_ratio, dims, heads):
    module = make(
        'elfatt',
        embed_dims=embed_dims,
        num_heads=num_heads,
        split_ratio=split_ratio,
        attn_scale=True,
    )
    assert (module.half_dims, module.half_heads) == (dims, heads)
    assert len(module.omega) == sum(heads)


def test_performer_is_deterministic_and_keeps_its_features():
    module, other = make('performer'), make('performer')
    assert not module.features.equal(other.features)
    other.load_state_dict(module.state_dict())
    x = tokens((5, 7), dtype=torch.float32)
    assert module.train()(x, (5, 7)).equal(module(x, (5, 7)))
    assert other(x, (5, 7)).equal(module(x, (5, 7)))


def test_number_of_random_features():
    for embed_dims, num_features in ((1, 1), (2, 2), (32, 110)):
        module = make('performer-plain', embed_dims=embed_dims, num_heads=1)
        assert module.features.shape == (num_features, embed_dims)


def test_nystrom_of_a_map_no_larger_than_its_grid_is_softmax_attention():
    nystrom = make('nystrom', num_iters=60).double()
    nn.init.normal_(nystrom.qkv.weight)  # well-conditioned
    softmax = make('softmax').double()
    softmax.load_state_dict(nystrom.state_dict())
    x = tokens((2, 3))
    torch.testing.assert_close(nystrom(x, (2, 3)), softmax(x, (2, 3)))


@pytest.mark.parametrize(
    'name, options, message',
    (
        ('elfatt', dict(split_ratio=1.5), r'split_ratio.*\[0, 1\].*1.5'),
        ('elfatt', dict(split_ratio=-0.1), r'split_ratio.*\[0, 1\].*-0.1'),
        (
            'elfatt',
            dict(split_ratio=0.3),
            'split_ratio=0.3.*embed_dims=24.*num_heads=4',
        ),
        (
            'elfatt',
            dict(split_ratio=0.125),
            'multiple of 2 channels.*split_ratio=0.125',
        ),
        ('elfatt', dict(block_size=50), 'block_size.*square.*50'),
        ('cross-shaped', dict(num_heads=3), 'num_heads must be even.*num_heads=3'),
        ('cross-shaped', dict(stripe_width=0), 'stripe_width.*0'),
        ('agent', dict(num_agents=5), 'num_agents.*square.*5'),
        ('agent', dict(map_side=0), 'map_side.*0'),
        ('nystrom', dict(num_landmarks=8), 'num_landmarks.*square.*8'),
        ('nystrom', dict(num_iters=0), 'num_iters.*0'),
        ('linformer', dict(sr_ratio=0), 'sr_ratio.*0'),
        ('performer', dict(num_features=0), 'num_features.*0'),
        ('focused', dict(focusing_factor=0), 'focusing_factor.*0'),
        ('focused', dict(kernel_size=4), 'kernel_size.*odd.*4'),
        ('focused', dict(map_side=0), 'map_side.*0'),
        ('agent', dict(used_agents=8), 'used_agents.*square.*8'),
    ),
)
def test_wrong_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


@ALL
def test_wrong_heads(name):
    with pytest.raises(ValueError, match='num_heads=5.*embed_dims=24'):
        make(name, num_heads=5)
