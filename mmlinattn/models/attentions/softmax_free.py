"""Softmax-free attention as a module."""

import math
from typing import Any, Optional, Union

from torch import Tensor, nn

from mmlinattn.functional import (
    depthwise_conv2d,
    linear_softmax_free_attention,
    softmax_free_attention,
    to_map,
    to_tokens,
)
from mmlinattn.functional.precision import at_least_float32
from mmlinattn.functional.softmax_free.inverse import check_solver
from mmlinattn.parts import register

from ..layers.types import HW
from .base import BaseAttention
from .landmarks import SAMPLERS


def check_exact_window(
    exact_window: int, attn_norm: Union[bool, str], solver: str, relative_ridge: bool
) -> None:
    """Refuse, by a ValueError, a window that is no size, or of another operator than
    the linear one."""
    if not isinstance(exact_window, int) or exact_window < 0:
        raise ValueError(
            f'exact_window must be an integer, 0 or more, got {exact_window!r}'
        )
    is_linear = attn_norm == 'rows' and solver == 'cholesky' and relative_ridge
    if exact_window and not is_linear:
        raise ValueError(
            f"exact_window={exact_window} needs attn_norm='rows', "
            f"solver='cholesky' and relative_ridge=True, got {attn_norm!r}, "
            f'{solver!r} and {relative_ridge}'
        )


@register
class SoftmaxFreeAttention(BaseAttention):
    """Attention of SOFT (arXiv 2110.11945) and SOFT++ (arXiv 2207.03341).

    One projection serves query and key. A depthwise convolution over the
    value map, one filter per head, is added to the attention output.

    Accepts exactly H * W tokens (no class token).

    Args:
        sampling_ratio (int): Side r of the cell of the map that a landmark
            represents.
        sampler (str): 'conv', 'pool', 'random' or 'biased'.
        kernel_size (int): Side of the local branch's filters, odd. 0 leaves out
            the branch.
        num_landmarks (int, optional): A square number of landmarks for maps of any
            size, instead of the ratio. See :class:`~.landmarks.LandmarkSampler`.
        attn_norm (bool | str): SOFT++'s symmetric normalization, or 'rows', or none.
            Without it, A gets the ridge 0.01 of SOFT's official code.
        num_iters (int): Newton-Raphson steps.
        solver, relative_ridge: See
            :func:`mmlinattn.functional.softmax_free_attention`.
        ridge (float, optional): Added to A's diagonal. Default: 0 with
            ``attn_norm``, 0.01 without.
        exact_window (int): With 'rows', side of the windows of the map in which the
            kernel is exact; 1: only its diagonal is, 0: none of it. See
            :func:`mmlinattn.functional.linear_softmax_free_attention`.
        Others: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``sampler`` or ``solver`` is unknown, ``kernel_size``
            is even, ``num_landmarks`` is not a square number, a number is out of
            range, or ``exact_window`` comes without 'rows', 'cholesky' and
            ``relative_ridge``.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        sampling_ratio: int = 8,
        sampler: str = 'conv',
        kernel_size: int = 9,
        num_landmarks: Optional[int] = None,
        attn_norm: Union[bool, str] = True,
        num_iters: int = 20,
        solver: str = 'auto',
        ridge: Optional[float] = None,
        relative_ridge: bool = False,
        exact_window: int = 0,
        *,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims, num_heads, attn_scale=attn_scale, init_cfg=init_cfg
        )
        if sampler not in SAMPLERS:
            raise ValueError(
                f'sampler must be one of {tuple(SAMPLERS)}, got {sampler!r}'
            )
        if kernel_size < 0 or (kernel_size and kernel_size % 2 == 0):
            raise ValueError(f'kernel_size must be odd or 0, got {kernel_size}')
        if ridge is None:
            ridge = 0.0 if attn_norm else 0.01
        check_solver(solver, num_iters, ridge, attn_norm)
        check_exact_window(exact_window, attn_norm, solver, relative_ridge)
        self.attn_norm = attn_norm
        self.num_iters = num_iters
        self.solver = solver
        self.ridge = ridge
        self.relative_ridge = relative_ridge
        self.exact_window = exact_window
        self.q = nn.Linear(embed_dims, embed_dims)
        self.v = nn.Linear(embed_dims, embed_dims)
        self.sampler = SAMPLERS[sampler](self.head_dims, sampling_ratio, num_landmarks)
        self.trained_size: Optional[tuple[int, int]] = None
        self.local_conv: Any = None
        if kernel_size:
            self.local_conv = nn.Conv2d(
                num_heads,
                num_heads,
                kernel_size,
                padding=kernel_size // 2,
                groups=num_heads,
                bias=False,
            )
        self.proj = nn.Linear(embed_dims, embed_dims)

    def keep_scale(self, hw_shape: HW) -> None:
        """Keep the norm of the output on other maps as on those of the training, of
        size (H, W), by a factor."""
        self.trained_size = math.prod(hw_shape), self.sampler.num_landmarks(hw_shape)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        self.check_map(x, hw_shape)
        q, v = self.q(x), self.v(x)
        if self.local_conv is None:
            out = self.attend(q, q, v, hw_shape)
        elif self.attends_as(SoftmaxFreeAttention):
            heads = self.attend_heads(q, v, hw_shape)
            out = self.add_heads(self.local_branch(v, hw_shape), heads)
        else:
            out = self.attend(q, q, v, hw_shape) + self.local_branch(v, hw_shape)
        return self.proj(out) if self.attn_norm else self.project_in_float32(out)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """See :meth:`BaseAttention.attend`; the queries are the keys too, so k is q."""
        return self.merge_heads(self.attend_heads(q, v, hw_shape))

    def attend_heads(self, q: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """Return heads (B, h, N, d) whose merger is :meth:`attend`."""
        q = self.split_heads(q) / self.head_dims**0.25
        v = self.split_heads(v)
        if not self.attn_norm:
            # its sums grow to N times the values, beyond float16
            (v,) = at_least_float32(v)
        landmarks = self.sampler(q, hw_shape)
        if self.exact_window:
            out = linear_softmax_free_attention(
                q, landmarks, v, self.ridge, self.exact_window, hw_shape
            )
        else:
            out = softmax_free_attention(
                q,
                landmarks,
                v,
                normalize=self.attn_norm,
                num_iters=self.num_iters,
                ridge=self.ridge,
                solver=self.solver,
                relative_ridge=self.relative_ridge,
                trained_size=self.trained_size,
            )
        return self.scale(out, v)

    def count_products(self, x: Tensor, hw_shape: HW) -> dict[str, int]:
        """Count the multiply-accumulates of the products with the kernels, and of the
        inverse, as Newton-Raphson steps, whichever solver computes it: see
        :func:`mmlinattn.analysis.count_flops`."""
        n, h = math.prod(hw_shape), self.num_heads
        m = self.sampler.num_landmarks(hw_shape)
        # row sums are one more column of each head's values
        columns = self.embed_dims + h * (self.attn_norm == 'rows')
        kernels = m * (n + m) * self.embed_dims + 2 * m * n * columns
        if self.exact_window:
            kernels += self.count_exact_part(hw_shape)
        if self.solver == 'cholesky':
            parts = 3 if self.exact_window else 6  # with the factor's inverse
            inverse = h * m**3 // parts + m * m * columns
        else:  # the step size, unless it is SOFT's, has the column sums of A^2
            steps = 2 * self.num_iters * m**3 + (m * m if self.attn_norm else 0)
            inverse = h * steps + m * m * columns
        return dict(gaussian_kernel=len(x) * kernels, pseudo_inverse=len(x) * inverse)

    def count_exact_part(self, hw_shape: HW) -> int:
        """Return those of the tokens' features, and of the kernel inside of windows."""
        m, n = self.sampler.num_landmarks(hw_shape), math.prod(hw_shape)
        h, d = self.num_heads, self.head_dims
        if self.exact_window == 1:
            return h * m * m * n
        size = self.exact_window**2
        tokens = size * math.prod(-(-side // self.exact_window) for side in hw_shape)
        in_windows = tokens * size * (d + m + d + 1)
        padding = (tokens - n) * m * (d + 2 * (d + 1))
        return h * (m * m * tokens + in_windows + padding)

    def local_branch(self, values: Tensor, hw_shape: HW) -> Tensor:
        """Depthwise convolution of the value map, (B, N, C) to (B, N, C)."""
        # the d channels of a head share its filter
        weight = self.local_conv.weight.repeat_interleave(self.head_dims, 0)
        maps = to_map(values, hw_shape)
        return to_tokens(depthwise_conv2d(maps, weight))
