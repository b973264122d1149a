"""Every function many times on the same inputs: bitwise the same, and right.

A kernel that reads what is not written yet shows itself in either.

Legend: B batch, h heads, N = H * W tokens, m landmarks, d head dim, e value dim.
"""

from functools import partial

import torch

from mmlinattn import functional as F

from ..cases import noise
from .unit import Settings, Unit

# Odd, so that no block is full at the edges.
HW_SHAPE = (23, 29)
HEADS = (2, 3)
LANDMARKS = 67
DTYPES = ('float32', 'bfloat16', 'float16')
# Error by the norm, of outputs and gradients, from the same in float64 on the CPU.
TOLERANCES = dict(float32=1e-3, bfloat16=3e-2, float16=1e-2)


def heads(*sizes, scale=1.0):
    """Noise (B, h, *sizes); a seed of its own for every size and scale."""
    return scale * noise((*HEADS, *sizes), seed=sum(sizes) + round(100 * scale))


def qkv(dims=32, value_dims=None):
    """Queries, keys and values."""
    tokens = HW_SHAPE[0] * HW_SHAPE[1]
    q, k = heads(tokens, dims), heads(tokens, dims, scale=0.9)
    return q, k, heads(tokens, value_dims or dims, scale=1.1)


def product_operands(dims, value_dims):
    """Rows, columns at distances about 1, and values."""
    _, k, v = qkv(dims, value_dims)
    return heads(LANDMARKS, dims) / dims**0.5, k / dims**0.5, v


def attention_operands(dims=32):
    """Queries, landmarks far enough apart for Newton to converge, and values."""
    q, _, v = qkv(dims)
    return q / dims**0.25, heads(LANDMARKS, dims) / dims**0.25, v


def landmark_matrix():
    """A well-conditioned A and a right-hand side."""
    landmarks = heads(LANDMARKS, 32) / 32**0.25
    return F.gaussian_kernel(landmarks), heads(LANDMARKS, 32, scale=0.8)


def with_landmarks(num=2):
    """Queries, keys, values and landmarks of both kinds."""
    return (*qkv(), *(heads(49, 32, scale=1 + i / 10) for i in range(num)))


def maps():
    """A map (B, C, H, W) and filters of a depthwise convolution."""
    return noise((2, 12, *HW_SHAPE)), noise((12, 1, 9, 9), seed=1)


def tokens_and_scales():
    channels = 96
    x = noise((2, HW_SHAPE[0] * HW_SHAPE[1], channels))
    return x, noise((channels,), seed=1), noise((channels,), seed=2)


def half_float32(function):
    """Like ``function``, which takes float32 or more in the models too."""
    return lambda *xs: function(
        *(x if x.dtype == torch.float64 else x.float() for x in xs)
    )


def functions():
    """By name: what makes the inputs, and the function."""
    found = {}
    for dims, value_dims in ((32, 32), (32, 64), (64, 64), (96, 96), (128, 128)):
        found[f'gaussian_product, d={dims}, e={value_dims}'] = (
            partial(product_operands, dims, value_dims),
            F.gaussian_product,
        )
    for normalize in (True, False):
        for keep in (True, False):
            found[
                f'softmax_free_attention, {"SOFT++" if normalize else "SOFT"}, P '
                f'{"kept" if keep else "streamed"}'
            ] = (
                attention_operands,
                partial(
                    F.softmax_free_attention,
                    normalize=normalize,
                    ridge=0.0 if normalize else 0.01,
                    keep_kernel=keep,
                ),
            )
    found.update(
        {
            'softmax_free_attention, SOFT++, P streamed, d=128': (
                partial(attention_operands, 128),
                partial(F.softmax_free_attention, keep_kernel=False),
            ),
            'softmax_free_attention, SOFT++, P streamed, two halves': (
                attention_operands,
                partial(F.softmax_free_attention, keep_kernel=False, halves=2),
            ),
            'softmax_free_attention, SOFT++, P streamed, polynomial': (
                attention_operands,
                partial(
                    F.softmax_free_attention, keep_kernel=False, solver='polynomial'
                ),
            ),
            'softmax_free_attention, cholesky': (
                attention_operands,
                partial(F.softmax_free_attention, ridge=0.01, solver='cholesky'),
            ),
            'gaussian_kernel': (
                lambda: [x[:, :, :131] for x in qkv()[:2]],
                F.gaussian_kernel,
            ),
            'newton_pinv': (
                landmark_matrix,
                half_float32(lambda a, x: F.newton_pinv(a, rhs=x)),
            ),
            'newton_pinv, polynomial': (
                landmark_matrix,
                half_float32(lambda a, x: F.newton_pinv(a, rhs=x, solver='polynomial')),
            ),
            'cholesky_solve': (landmark_matrix, half_float32(F.cholesky_solve)),
            'efficient_attention': (qkv, F.efficient_attention),
            'block_attention': (
                qkv,
                lambda q, k, v: F.block_attention(q, k, v, HW_SHAPE, 49),
            ),
            'agent_attention': (partial(with_landmarks, 1), F.agent_attention),
            'focused_linear_attention': (qkv, F.focused_linear_attention),
            'performer_attention': (
                lambda: (*qkv(), noise((64, 32), seed=7)),
                F.performer_attention,
            ),
            'nystrom_attention': (with_landmarks, F.nystrom_attention),
            'depthwise_conv2d': (maps, F.depthwise_conv2d),
            'feat_scale': (tokens_and_scales, F.feat_scale),
            'attn_scale': (
                lambda: (*qkv()[:2], noise((HEADS[1],), seed=3)),
                F.attn_scale,
            ),
        }
    )
    return found


def units(settings: Settings):
    """A unit for every function and dtype."""
    return [
        Unit(
            f'{name}, {dtype}',
            partial(check, name, *makers, getattr(torch, dtype), settings),
        )
        for name, makers in functions().items()
        for dtype in DTYPES
    ]


def check(name, make_inputs, function, dtype, settings: Settings):
    """Runs a function and its gradients again and again.

    Args:
        name (str): Its name.
        make_inputs (Callable): Makes its inputs, float32.
        function (Callable): The function.
        dtype (torch.dtype): Of the inputs.
        settings (Settings): Device and number of runs.

    Returns:
        list[dict]: One row: how many runs differed from the first in any bit, by
        how much at most, and the error of the first.
    """
    inputs = [x.detach().to(dtype) for x in make_inputs()]
    runs = settings.pick(1000, 3)

    def results(xs, grad=None):
        xs = [x.clone().requires_grad_() for x in xs]
        out = function(*xs)
        if grad is None:
            grad = noise(tuple(out.shape), seed=5)
        grad = grad.to(out.device, out.dtype)
        return [out.detach(), *torch.autograd.grad(out, xs, grad)], grad

    wanted, grad = results([x.double() for x in inputs])
    on_device = [x.to(settings.device) for x in inputs]
    first, _ = results(on_device, grad)
    grad = grad.to(settings.device, first[0].dtype)
    different = torch.zeros((), dtype=torch.int64, device=settings.device)
    deviation = torch.zeros((), device=settings.device)
    for _ in range(runs - 1):
        again, _ = results(on_device, grad)
        changed = torch.zeros((), dtype=torch.bool, device=settings.device)
        for x, y in zip(again, first):
            changed |= (bits(x) != bits(y)).any()
            deviation = torch.maximum(deviation, (x - y).abs().max().float())
        different += changed
    errors = [relative_error(x, y) for x, y in zip(first, wanted)]
    dtype_name = str(dtype).rpartition('.')[2]
    row = dict(
        function=name,
        dtype=dtype_name,
        runs=runs,
        different=int(different),
        largest_deviation=float(deviation),
        error=max(errors, key=lambda x: float('inf') if x != x else x),
        tolerance=TOLERANCES[dtype_name],
    )
    problems = []
    if row['different']:
        problems.append(f'{row["different"]} of {runs} runs differ')
    if not row['error'] <= row['tolerance']:
        problems.append(f'error {row["error"]:.2g} above {row["tolerance"]:g}')
    if problems:
        row['problem'] = ', '.join(problems)
    return [row]


def bits(x):
    """A tensor as bytes, in which NaN is like itself and -0 unlike 0."""
    return x.contiguous().view(torch.uint8)


def relative_error(x, wanted):
    """Norm of the error over the norm of what is wanted."""
    x = x.detach().double().cpu()
    return float((x - wanted).norm() / wanted.norm())


def headline(rows):
    equal = sum(not row['different'] for row in rows)
    worst = max((row['error'] / row['tolerance'] for row in rows), default=0)
    return (
        f'{equal} of {len(rows)} bitwise the same in {rows[0]["runs"]} runs, errors '
        f'at most {worst:.0%} of the tolerance'
    )
