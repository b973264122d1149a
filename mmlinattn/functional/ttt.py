"""Test-time training of ViT^3: a small network learns values from keys, and then reads
queries.

Legend: B batch, h heads, (H, W) map, N tokens, d head dim.
"""

from torch import Tensor, stack
from torch.nn.functional import pad, silu

from .convolution import dynamic_conv2d
from .maps import unflatten
from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token

# of the loss; the official code has it for both networks
_SCALE = 9**-0.5
_SIDE = 3  # of the filters


def trained_swiglu(q: Tensor, k: Tensor, v: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    r"""Return a gated network after one step that teaches it the values of the keys.

    The network is :math:`f(x) = x W_1 \odot SiLU(x W_2)`, and its loss :math:`-\frac{1}
    {3 N} \sum_i f(K_i) V_i^T`. A column g of the gradients becomes :math:`g / (\|g\| +
    1)`, and the step has the length 1 (*ViT^3: Unlocking Test-Time Training in Vision*,
    arXiv 2512.01643). The result is :math:`f(Q)`, which is not linear in the values.

    Args:
        q, k, v (Tensor): (B, h, N, d) each. Half precision is computed in float32, with
            or without autocast.
        w1, w2 (Tensor): The weights before the step, (1, h, d, d).

    Returns:
        Tensor: (B, h, N, d), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v, w1, w2 = at_least_float32(q, k, v, w1, w2)
        gate = to_every_token(k, w2)
        sigmoid = gate.sigmoid()
        slope = sigmoid * (1 + gate * (1 - sigmoid))  # of SiLU
        keys = k * (_SCALE / k.size(-2))
        step1 = _clip(sum_over_tokens(keys, v * gate * sigmoid), (-2,))
        step2 = _clip(sum_over_tokens(keys, v * to_every_token(k, w1) * slope), (-2,))
        out = to_every_token(q, w1 + step1)
        return (out * silu(to_every_token(q, w2 + step2))).to(dtype)


def trained_conv(q: Tensor, k: Tensor, v: Tensor, weight: Tensor) -> Tensor:
    r"""Return a depthwise convolution after one step that teaches it the values of the
    keys.

    Loss and step are those of :func:`trained_swiglu`, with the 9 weights of a channel
    in place of a column.

    Args:
        q, k, v (Tensor): Maps (B, d, H, W) each. Half precision is computed in float32,
            with or without autocast.
        weight (Tensor): The filters before the step, (d, 1, 3, 3).

    Returns:
        Tensor: (B, d, H, W), in the dtype of ``v``.
    """
    dtype = v.dtype
    with autocast_disabled(q):
        q, k, v, weight = at_least_float32(q, k, v, weight)
        height, width = k.shape[-2:]
        k = pad(k * (_SCALE / (height * width)), [_SIDE // 2] * 4)
        products = [
            (k[..., i : i + height, j : j + width] * v).sum((-2, -1))
            for i in range(_SIDE)
            for j in range(_SIDE)
        ]
        step = unflatten(stack(products, -1), -1, (_SIDE, _SIDE))
        filters = weight.squeeze(1) + _clip(step, (-2, -1))
        return dynamic_conv2d(q, filters).to(dtype)


def _clip(gradient: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return a gradient, shorter than 1 along some axes."""
    return gradient / (gradient.norm(dim=dims, keepdim=True) + 1)
