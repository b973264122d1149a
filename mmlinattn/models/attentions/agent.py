"""Agent attention as a module."""

import torch
from torch import nn
from torch.nn.functional import interpolate

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from .base import ProjectedAttention
from .landmarks import pool_map

# side of the coarse table of a bias
_TABLE_SIDE = 7


class AgentBias(nn.Module):
    """Bias between agents and the tokens of a map.

    It is the sum of a coarse table, one entry per row and one entry per column, all
    resized to the map.

    Args:
        num_heads (int): Heads h.
        num_agents (int): Agents n.
        map_side (int): Number of rows and columns that have entries.
    """

    def __init__(self, num_heads, num_agents, map_side):
        super().__init__()
        shapes = ((_TABLE_SIDE, _TABLE_SIDE), (map_side, 1), (1, map_side))
        self.table, self.rows, self.columns = (
            nn.Parameter(
                nn.init.trunc_normal_(
                    torch.zeros(num_heads, num_agents, *shape), std=0.02
                )
            )
            for shape in shapes
        )

    def forward(self, hw_shape):
        """Biases for a map (H, W): (1, h, n, N)."""
        bias = sum(
            interpolate(part, hw_shape, mode='bilinear', align_corners=False)
            for part in (self.table, self.rows, self.columns)
        )
        return bias.flatten(2).unsqueeze(0)


@MODELS.register_module()
class AgentAttention(ProjectedAttention):
    """Softmax attention through a few agents, which are pooled queries (*Agent
    Attention: On the Integration of Softmax and Linear Attention*, arXiv
    2312.08874), with the paper's agent biases and depthwise convolution of
    the values.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        num_agents (int): Agents n, a square number.
        map_side (int): Rows and columns of the map that the biases are stored
            for. They are resized for other maps.
        qkv_bias (bool): Biases of the three projections.
        attn_scale (bool): Learns one AttnScale factor per head. The mean is
            taken over all tokens.
        init_cfg (dict, optional): Initialization of MMEngine.

    Raises:
        ValueError: If ``num_agents`` is not a square number or ``map_side`` is
            not a positive integer; in ``forward`` if the map is empty or there
            are tokens besides the map's.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims,
        num_heads,
        num_agents=49,
        map_side=14,
        qkv_bias=True,
        attn_scale=False,
        init_cfg=None,
    ):
        super().__init__(embed_dims, num_heads, qkv_bias, True, attn_scale, init_cfg)
        if not isinstance(map_side, int) or map_side < 1:
            raise ValueError(f'map_side must be a positive integer, got {map_side!r}')
        self.agent_side = F.square_side(num_agents, 'num_agents')
        self.agent_bias = AgentBias(num_heads, num_agents, map_side)
        self.query_bias = AgentBias(num_heads, num_agents, map_side)

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = F.agent_attention(
            q,
            k,
            v,
            pool_map(q, hw_shape, self.agent_side),
            self.agent_bias(hw_shape).to(q.dtype),
            self.query_bias(hw_shape).mT.to(q.dtype),
        )
        return self.merge_heads(self.scale(out, v))
