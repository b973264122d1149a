"""Rows of every attention against its N x N matrix, as its paper writes it.

Legend: B batch, h heads, (H, W) map, N = H * W tokens, M keys, C channels.
"""

import importlib.util
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from mmlinattn import functional as F
from mmlinattn.analysis import attention_rows
from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern
TESTS = Path(__file__).resolve().parents[1]


def load(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, TESTS / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


zoo = load('test_models/test_attentions/test_zoo.py')
linear = load('test_functional/test_linear.py')

CASES = {
    **zoo.CASES,
    'softmax-free': dict(type='SoftmaxFreeAttention', sampling_ratio=2, num_iters=8),
    'softmax-free-ridge': dict(
        type='SoftmaxFreeAttention', sampling_ratio=2, attn_norm=False, num_iters=8
    ),
    'window': dict(type='WindowAttention', window_size=3),
    'window-shifted': dict(type='WindowAttention', window_size=3, shift_size=1),
    'talking-heads': dict(type='TalkingHeadsAttention'),
    'class': dict(type='ClassAttention'),
}


def build(name, **options):
    """A module whose every parameter matters."""
    case = dict(embed_dims=24, num_heads=4, **CASES[name], **options)
    module = MODELS.build(case)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double().eval()


def scaled(attn, omega, average):
    """AttnScale of attn (B, h, N, M); average has the same rows everywhere."""
    if omega is None:
        return attn
    omega = omega.view(-1, 1, 1)
    return average + (1 + omega) * (attn - average)


def average(attn):
    return torch.full_like(attn, 1 / attn.size(-1))


def local_matrix(q, k, hw_shape, block_shape, centered=False, mask=False, omega=None):
    """Attention of padded tokens, without weights between blocks, cropped."""
    (q, shape), (k, _) = (F.pad_map(x, hw_shape, block_shape, centered) for x in (q, k))
    inside = torch.ones(math.prod(hw_shape), 1)
    inside = F.pad_map(inside, hw_shape, block_shape, centered)[0].bool().squeeze(-1)
    rows, columns = (
        torch.arange(length) // side for length, side in zip(shape, block_shape)
    )
    labels = (rows[:, None] * shape[1] + columns).flatten()
    is_key = (labels[:, None] == labels).double()
    if mask:
        is_key = is_key * inside
    attn = linear.softmax_matrix(q, k, is_key.log())
    mean = is_key / is_key.sum(-1, keepdim=True)
    attn = scaled(attn, omega, mean)
    return attn[..., inside, :][..., inside]


def cross_shaped(module, q, k, hw_shape):
    stripes = ((hw_shape[0], module.stripe_width), (module.stripe_width, hw_shape[1]))
    omegas = (None, None) if module.omega is None else module.omega.chunk(2)
    return torch.cat(
        [
            local_matrix(
                zoo.split(a, 2), zoo.split(b, 2), hw_shape, stripe, True, omega=omega
            )
            for a, b, stripe, omega in zip(
                q.chunk(2, -1), k.chunk(2, -1), stripes, omegas
            )
        ],
        1,
    )


def elfatt(module, q, k, hw_shape):
    omegas = (None, None)
    if module.omega is not None:
        omegas = module.omega.split(module.half_heads)
    parts = []
    for i, heads in enumerate(module.half_heads):
        if not heads:
            continue
        a, b = (zoo.split(x.split(module.half_dims, -1)[i], heads) for x in (q, k))
        if i == 0:
            attn = linear.efficient_matrix(a, b)
            parts.append(scaled(attn, omegas[0], average(attn)))
        else:
            parts.append(
                local_matrix(
                    a,
                    b,
                    hw_shape,
                    module.block_shape,
                    mask=module.mask_padding,
                    omega=omegas[1],
                )
            )
    return torch.cat(parts, 1)


def convolution_matrix(conv, hw_shape, num_heads):
    """Mean over the channels of a depthwise convolution's N x N matrices, which all
    heads share."""
    eye = torch.eye(math.prod(hw_shape), dtype=torch.float64)
    unit = eye.unsqueeze(-1).expand(-1, -1, conv.in_channels)
    bias = conv.bias
    out = zoo.paper_lepe(conv, unit, hw_shape) - bias
    return out.mean(-1).T.expand(num_heads, -1, -1)


def windows(module, q, k, hw_shape):
    """Of tokens on a map of whole windows."""
    side = module.window_size
    shift = module.shift_size if min(hw_shape) > side else 0
    # where a token goes when the map is shifted, and whether around the edge
    y, x = (
        index.flatten()
        for index in torch.meshgrid(*map(torch.arange, hw_shape), indexing='ij')
    )
    around = torch.stack((y < shift, x < shift), -1)
    y, x = (y - shift) % hw_shape[0], (x - shift) % hw_shape[1]
    window = y // side * hw_shape[1] + x // side
    rows, columns = (p[:, None] % side - p % side + side - 1 for p in (y, x))  # (N, N)
    index = (rows * (2 * side - 1) + columns).clamp(0)
    index = index.clamp(max=(2 * side - 1) ** 2 - 1)
    bias = module.relative_position_bias_table[index].permute(2, 0, 1)
    bias = bias - 100.0 * (around[:, None] != around).any(-1)
    together = window[:, None] == window
    bias = bias.masked_fill(~together, -math.inf)
    attn = linear.softmax_matrix(q, k, bias)
    return scaled(attn, module.omega, together.double() / side**2)


def softmax_free(module, q, hw_shape):
    q = zoo.split(q, 4) / module.head_dims**0.25
    landmarks = module.sampler(q, hw_shape)

    def kernel(a, b):
        return (-torch.cdist(a, b, compute_mode=NO_MM).square() / 2).exp()

    a, p = kernel(landmarks, landmarks), kernel(landmarks, q)
    degree = a.sum(-1)
    scale = torch.ones_like(degree)
    alpha = None
    if module.attn_norm:
        scale, alpha = degree.rsqrt(), F.newton_alpha(a)
    else:
        norm = degree.amax(-1)[..., None, None]
        a = a + module.ridge * torch.eye(a.size(-1), dtype=a.dtype)
        alpha = torch.minimum(1.8 / norm**2, 1.99 / (norm + module.ridge) ** 2)
    inverse = alpha * a
    for _ in range(module.num_iters):
        inverse = 2 * inverse - inverse @ a @ inverse
    p = scale.unsqueeze(-1) * p
    return p.mT @ inverse @ p


NO_MM = 'donot_use_mm_for_euclid_dist'


def matrix(module, q, k, hw_shape):
    """The whole matrix, (B, h, N, M)."""
    kind = type(module).__name__
    if kind == 'CrossShapedWindowAttention':
        return cross_shaped(module, q, k, hw_shape)
    if kind == 'ELFATT':
        return elfatt(module, q, k, hw_shape)
    if kind == 'SoftmaxFreeAttention':
        attn = softmax_free(module, q, hw_shape)
        return scaled(attn, module.omega, average(attn))
    if getattr(module, 'pos_embed', None) is not None:
        k = zoo.with_positions(module, k, hw_shape)
    q, k = (zoo.split(x, 4) for x in (q, k))
    if kind == 'WindowAttention':
        return windows(module, q, k, hw_shape)
    if kind == 'TalkingHeadsAttention':
        logits = torch.einsum('gh,bhij->bgij', module.mix_logits.weight, q @ k.mT)
        logits = logits / module.head_dims**0.5 + module.mix_logits.bias.view(-1, 1, 1)
        attn = torch.einsum(
            'gh,bhij->bgij', module.mix_weights.weight, logits.softmax(-1)
        )
        attn = attn + module.mix_weights.bias.view(-1, 1, 1)
    elif kind == 'EfficientAttention':
        attn = linear.efficient_matrix(q, k)
    elif kind == 'PerformerAttention':
        attn = linear.performer_matrix(q, k, module.features)
    elif kind == 'FocusedLinearAttention':
        scale = nn.functional.softplus(module.focus_scale).view(4, 1, 6)
        attn = linear.focused_matrix(q, k, scale, module.focusing_factor)
    elif kind == 'AgentAttention':
        attn = linear.agent_matrix(
            q,
            k,
            zoo.paper_grid(q, hw_shape, module.agent_side),
            zoo.paper_agent_bias(module.agent_bias, hw_shape)[None],
            zoo.paper_agent_bias(module.query_bias, hw_shape)[None].mT,
        )
    elif kind == 'NystromAttention':
        landmarks = [zoo.paper_grid(x, hw_shape, module.landmark_side) for x in (q, k)]
        attn = linear.nystrom_matrix(q, k, *landmarks)
    else:
        attn = linear.softmax_matrix(q, k)
    attn = scaled(attn, module.omega, average(attn))
    if kind == 'FocusedLinearAttention':
        attn = attn + convolution_matrix(module.local_conv, hw_shape, 4)
    return attn


def arguments(name, module, hw_shape):
    """Queries, keys and values of two images."""
    num = math.prod(hw_shape)
    num_queries = 1 if name == 'class' else num
    num_keys = math.prod(module.key_shape(hw_shape))
    q, k, v = (
        torch.randn(2, n, 24, dtype=torch.float64)
        for n in (num_queries, num_keys, num_keys)
    )
    return q, q if name.startswith('softmax-free') else k, v


@pytest.mark.parametrize('attn_scale', (False, True))
@pytest.mark.parametrize('name', CASES)
def test_rows_are_those_of_the_matrix(name, attn_scale):
    if name == 'class' and attn_scale:
        return
    module = build(name, attn_scale=attn_scale)
    hw_shape = (6, 9) if name.startswith('window') else (5, 7)
    q, k, v = arguments(name, module, hw_shape)
    expected = matrix(module, q, k, hw_shape)
    # more than a backward pass gives, not in order, one of them twice
    queries = [0] if name == 'class' else [3, 0, 34, 7, 7, 12, 33, 1, 30, 20]
    rows = attention_rows(module, q, k, v, hw_shape, queries)
    torch.testing.assert_close(rows, expected[:, :, queries])


def test_a_row_costs_what_a_forward_pass_costs():
    """No tensor is larger than the tokens and the kernel's blocks."""
    module = build('efficient-plain')
    num, largest = 5000, 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                largest = max(largest, out.numel())
            return out

    q, k, v = (torch.randn(1, num, 24, dtype=torch.float64) for _ in range(3))
    with Watch():
        rows = attention_rows(module, q, k, v, (50, 100), [17])
    assert rows.shape == (1, 4, 1, num) and largest <= 24 * num


def test_no_queries():
    module = build('softmax')
    q, k, v = arguments('softmax', module, (2, 3))
    assert attention_rows(module, q, k, v, (2, 3), []).shape == (2, 4, 0, 6)


def test_wrong_queries():
    module = build('softmax')
    qkv = arguments('softmax', module, (2, 3))
    with pytest.raises(ValueError, match=r'queries must be in 0\.\.\.5, got \[6, -1\]'):
        attention_rows(module, *qkv, (2, 3), [0, 6, -1])
    with pytest.raises(ValueError, match=r'eval mode.*eval\(\)'):
        attention_rows(module.train(), *qkv, (2, 3), [0])
