"""Nystroemformer attention on maps."""

from typing import Optional

from torch import Tensor

from mmlinattn.functional import nystrom_attention, square_side
from mmlinattn.functional.tracing import smaller
from mmlinattn.parts import register

from ..layers.types import HW
from .base import ProjectedAttention, check_count
from .landmarks import pool_map


@register
class NystromAttention(ProjectedAttention):
    """Softmax attention through landmarks (*Nystroemformer: A Nystroem-Based
    Algorithm for Approximating Self-Attention*, arXiv 2102.03902).

    The paper's landmarks are means of segments of the sequence. Here they are means
    of the cells of a grid on the map. The grid has at most as many rows and columns
    as the map. It is bound to the map.

    Args:
        num_landmarks (int): Landmarks m, a square number.
        num_iters (int): Steps of the pseudo-inverse.
        lepe (bool): The paper's skip connection on a map.
        Others: See :class:`ProjectedAttention`.

    Raises:
        ValueError: If ``num_landmarks`` is not a square number or ``num_iters``
            is not a positive integer.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_landmarks: int = 49,
        num_iters: int = 6,
        lepe: bool = True,
        *,
        qkv_bias: bool = True,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            lepe=lepe,
            qkv_bias=qkv_bias,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        check_count(num_iters, 'num_iters')
        self.landmark_side = square_side(num_landmarks, 'num_landmarks')
        self.num_iters = num_iters

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        grid = tuple(smaller(self.landmark_side, length) for length in hw_shape)
        q_landmarks, k_landmarks = [pool_map(x, hw_shape, grid) for x in (q, k)]
        return nystrom_attention(q, k, v, q_landmarks, k_landmarks, self.num_iters)
