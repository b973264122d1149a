"""Softmax-free attention as a module."""

import math

from torch import nn

from mmlinattn import functional as F
from mmlinattn.functional.precision import at_least_float32
from mmlinattn.functional.softmax_free.inverse import check_solver
from mmlinattn.registry import MODELS

from .base import BaseAttention
from .landmarks import SAMPLERS


@MODELS.register_module()
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
        embed_dims, num_heads, **kwargs: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``sampler`` or ``solver`` is unknown, ``kernel_size``
            is even, ``num_landmarks`` is not a square number, or a number is out of
            range.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims,
        num_heads,
        sampling_ratio=8,
        sampler='conv',
        kernel_size=9,
        num_landmarks=None,
        attn_norm=True,
        num_iters=20,
        solver='auto',
        ridge=None,
        relative_ridge=False,
        **kwargs,
    ):
        super().__init__(embed_dims, num_heads, **kwargs)
        if sampler not in SAMPLERS:
            raise ValueError(
                f'sampler must be one of {tuple(SAMPLERS)}, got {sampler!r}'
            )
        if kernel_size < 0 or (kernel_size and kernel_size % 2 == 0):
            raise ValueError(f'kernel_size must be odd or 0, got {kernel_size}')
        if ridge is None:
            ridge = 0.0 if attn_norm else 0.01
        check_solver(solver, num_iters, ridge, attn_norm)
        self.attn_norm = attn_norm
        self.num_iters = num_iters
        self.solver = solver
        self.ridge = ridge
        self.relative_ridge = relative_ridge
        self.q = nn.Linear(embed_dims, embed_dims)
        self.v = nn.Linear(embed_dims, embed_dims)
        self.sampler = SAMPLERS[sampler](self.head_dims, sampling_ratio, num_landmarks)
        self.trained_size = None
        self.local_conv = None
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

    def keep_scale(self, hw_shape):
        """Keeps the norm of the output on other maps as on those of the training, of
        size (H, W), by a factor."""
        self.trained_size = math.prod(hw_shape), self.sampler.num_landmarks(hw_shape)

    def forward(self, x, hw_shape):
        self.check_map(x, hw_shape)
        q, v = self.q(x), self.v(x)
        out = self.attend(q, q, v, hw_shape)
        if self.local_conv is not None:
            out = out + self.local_branch(v, hw_shape)
        return self.proj(out) if self.attn_norm else self.project_in_float32(out)

    def attend(self, q, k, v, hw_shape):
        """See :meth:`BaseAttention.attend`; the queries are the keys too, so k is q."""
        q = self.split_heads(q) / self.head_dims**0.25
        v = self.split_heads(v)
        if not self.attn_norm:
            # its sums grow to N times the values, beyond float16
            (v,) = at_least_float32(v)
        out = F.softmax_free_attention(
            q,
            self.sampler(q, hw_shape),
            v,
            normalize=self.attn_norm,
            num_iters=self.num_iters,
            ridge=self.ridge,
            solver=self.solver,
            relative_ridge=self.relative_ridge,
            trained_size=self.trained_size,
        )
        return self.merge_heads(self.scale(out, v))

    def local_branch(self, values, hw_shape):
        """Depthwise convolution of the value map, (B, N, C) to (B, N, C)."""
        # the d channels of a head share its filter
        weight = self.local_conv.weight.repeat_interleave(self.head_dims, 0)
        maps = F.to_map(values, hw_shape)
        return F.to_tokens(F.depthwise_conv2d(maps, weight))
