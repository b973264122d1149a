"""Agent attention as a module."""

from typing import Any, Optional

from torch import Tensor, nn

from mmlinattn.functional import agent_attention, square_side, unflatten
from mmlinattn.parts import register

from ..layers.positions import learned_table, resize_map
from ..layers.types import HW
from .base import ProjectedAttention, check_count
from .landmarks import pool_map

# side of the coarse table of a bias
_TABLE_SIDE = 7


class AgentBias(nn.Module):
    """Bias between agents and the tokens of a map.

    It is the sum of a coarse table, one entry per row and one entry per column, all
    resized to the map. If the number of agents in use differs from the stored one, it
    is resized over the grid of agents too.
    """

    def __init__(
        self, num_heads: int, num_agents: int, map_side: int, used_side: int
    ) -> None:
        super().__init__()
        self.stored_side = square_side(num_agents, 'num_agents')
        self.used_side = used_side
        shapes = ((_TABLE_SIDE, _TABLE_SIDE), (map_side, 1), (1, map_side))
        self.table, self.rows, self.columns = (
            learned_table(num_heads, num_agents, *shape) for shape in shapes
        )
        self._register_load_state_dict_pre_hook(self._fit_stored_map)

    def forward(self, hw_shape: HW) -> Tensor:
        """Biases for a map (H, W): (1, h, n, N)."""
        bias = resize_map(self.table, hw_shape) + resize_map(
            self.rows + self.columns, hw_shape
        )
        bias = bias.flatten(2)  # (h, stored agents, N)
        if self.used_side != self.stored_side:
            grids = unflatten(
                bias.transpose(1, 2), -1, (self.stored_side, self.stored_side)
            )
            bias = resize_map(grids, (self.used_side, self.used_side))
            bias = bias.flatten(2).transpose(1, 2)
        return bias.unsqueeze(0)

    def _fit_stored_map(
        self, state_dict: dict[str, Tensor], prefix: str, *args: Any
    ) -> None:
        """Resize a checkpoint's rows and columns to the number of ours."""
        for name in ('rows', 'columns'):
            stored, own = state_dict.get(f'{prefix}{name}'), getattr(self, name)
            if stored is not None and stored.shape[:2] == own.shape[:2]:
                state_dict[f'{prefix}{name}'] = resize_map(stored, own.shape[2:])


@register
class AgentAttention(ProjectedAttention):
    """Softmax attention through a few agents, which are pooled queries (*Agent
    Attention: On the Integration of Softmax and Linear Attention*, arXiv
    2312.08874), with the paper's agent biases and depthwise convolution of
    the values. It is bound to the map.

    Args:
        num_agents (int): Agents that the biases are stored for, a square number.
        map_side (int): Rows and columns of the map that the biases are stored
            for. They are resized for other maps.
        used_agents (int, optional): Agents n in use, a square number. The biases are
            resized to it, as in the paper's detectors. Default: ``num_agents``.
        Others: See :class:`ProjectedAttention`; LePE is
            always there.

    Raises:
        ValueError: If ``num_agents`` or ``used_agents`` is not a square number or
            ``map_side`` is not a positive integer.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_agents: int = 49,
        map_side: int = 14,
        used_agents: Optional[int] = None,
        *,
        qkv_bias: bool = True,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            lepe=True,
            qkv_bias=qkv_bias,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        check_count(map_side, 'map_side')
        self.agent_side = square_side(num_agents, 'num_agents')
        if used_agents is not None:
            self.agent_side = square_side(used_agents, 'used_agents')
        self.agent_bias, self.query_bias = (
            AgentBias(num_heads, num_agents, map_side, self.agent_side)
            for _ in range(2)
        )

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return agent_attention(
            q,
            k,
            v,
            pool_map(q, hw_shape, self.agent_side),
            self.agent_bias(hw_shape).to(q.dtype),
            self.query_bias(hw_shape).transpose(-2, -1).to(q.dtype),
        )
