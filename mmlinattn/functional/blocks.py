"""Square blocks of a token map, and back.

Legend: ... batch and heads, (H, W) map, N = H * W tokens, s side of a block,
n blocks, d channels.
"""
import math

from torch.nn.functional import pad


def pad_map(x, hw_shape, side):
    """Zero-pads a token map at its right and bottom to whole blocks.

    Args:
        x (Tensor): (..., N, d).
        hw_shape (tuple[int]): (H, W).
        side (int): s.

    Returns:
        tuple[Tensor, tuple[int]]: Tokens of the padded map and its size.
    """
    height, width = hw_shape
    pad_h, pad_w = -height % side, -width % side
    if pad_h or pad_w:
        x = pad(x.unflatten(-2, (height, width)), (0, 0, 0, pad_w, 0, pad_h))
        x = x.flatten(-3, -2)
    return x, (height + pad_h, width + pad_w)


def crop_map(x, padded_shape, hw_shape):
    """Undoes :func:`pad_map`: (..., N', d) to (..., N, d)."""
    if tuple(padded_shape) == tuple(hw_shape):
        return x
    height, width = hw_shape
    return x.unflatten(-2, padded_shape)[..., :height, :width, :].flatten(-3, -2)


def blockify(x, hw_shape, side):
    """Cuts a token map in blocks, zero-padded to whole ones.

    Args:
        x (Tensor): (..., N, d).
        hw_shape (tuple[int]): (H, W).
        side (int): s.

    Returns:
        Tensor: (..., n, s * s, d), blocks and their tokens in raster order.
    """
    x, (height, width) = pad_map(x, hw_shape, side)
    x = x.unflatten(-2, (height // side, side, width // side, side))
    return x.transpose(-4, -3).flatten(-5, -4).flatten(-3, -2)


def unblockify(x, hw_shape, side):
    """Undoes :func:`blockify`: (..., n, s * s, d) to (..., N, d)."""
    rows, cols = (math.ceil(length / side) for length in hw_shape)
    x = x.unflatten(-2, (side, side)).unflatten(-4, (rows, cols))
    x = x.transpose(-4, -3).flatten(-5, -2)
    return crop_map(x, (rows * side, cols * side), hw_shape)
