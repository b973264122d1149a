"""Test-time training of ViT^3: a small network learns values from keys, and then reads
queries.

Legend: B batch, h heads, (H, W) map, N tokens, d head dim.
"""

from torch import Tensor
from torch.nn.functional import silu

from .convolution import dynamic_conv2d, filters_gradient
from .maps import unflatten
from .precision import at_least_float32, autocast_disabled
from .tokens import sum_over_tokens, to_every_token
from .tracing import is_traced

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
        if is_traced():
            return _after_one_step(q, k, v, w1, w2).to(dtype)
        # products of three axes take fewer operators
        heads = q.shape[:2]
        if heads[0] > 1:
            w1, w2 = [w.expand(*heads, -1, -1) for w in (w1, w2)]
        out = _after_one_step(*[x.flatten(0, 1) for x in (q, k, v, w1, w2)])
        return unflatten(out.to(dtype), 0, heads)


def _after_one_step(q: Tensor, k: Tensor, v: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """Return :func:`trained_swiglu` of tokens (..., N, d) and weights (..., d, d)."""
    gate = to_every_token(k, w2)
    silu_gate, sigmoid = silu(gate), gate.sigmoid()
    slope = silu_gate + sigmoid * (1 - silu_gate)  # of SiLU
    scale = _SCALE / k.size(-2)
    gradient = sum_over_tokens(k, v * silu_gate)
    w1_after = _step(w1, gradient, scale, (-2,))
    gradient = sum_over_tokens(k, v * to_every_token(k, w1) * slope)
    w2_after = _step(w2, gradient, scale, (-2,))
    return to_every_token(q, w1_after) * silu(to_every_token(q, w2_after))


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
        gradient = filters_gradient(k, v, _SIDE)
        scale = _SCALE / (height * width)
        filters = _step(weight.squeeze(1), gradient, scale, (-2, -1))
        return dynamic_conv2d(q, filters).to(dtype)


def _step(
    weight: Tensor, gradient: Tensor, scale: float, dims: tuple[int, ...]
) -> Tensor:
    """Add a gradient times a scale to weights, shorter than 1 along some axes.

    Dividing the 1 by the scale takes no product.
    """
    length = gradient.norm(dim=dims, keepdim=True) + 1 / scale
    if is_traced():  # ONNX has no such operator
        return weight + gradient / length
    return weight.addcdiv(gradient, length)
