"""The transformer block that all backbones are made of.

Legend: B batch, N tokens, C channels.
"""

from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn.functional import feat_scale
from mmlinattn.functional.precision import autocast_disabled
from mmlinattn.parts import build_activation, build_model

from .depthwise import DepthwiseConv
from .initialization import BaseModule
from .residuals import DropPath, LayerScale
from .types import HW


def drop_path_rates(largest: float, num_blocks: int) -> list[float]:
    """Return rates of stochastic depth, growing linearly from 0 over the blocks to the
    largest, which is a ValueError unless it is in [0, 1)."""
    if not 0 <= largest < 1:
        raise ValueError(f'drop_path_rate must be in [0, 1), got {largest}')
    return [largest * i / max(num_blocks - 1, 1) for i in range(num_blocks)]


class FeatScale(nn.Module):
    """FeatScale as a layer, (B, N, C) to (B, N, C). It starts as the identity.

    Args:
        embed_dims (int): Channels C.
    """

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.dc_scale = nn.Parameter(torch.zeros(embed_dims))
        self.hc_scale = nn.Parameter(torch.zeros(embed_dims))

    def forward(self, x: Tensor) -> Tensor:
        return feat_scale(x, self.dc_scale, self.hc_scale)


class TransformerBlock(BaseModule):
    """Attention and FFN, each with a shortcut and a LayerNorm.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads of the attention.
        attention (dict): Config of the attention.
        norm_placement (str): 'pre', x + f(LN(x)), or 'post', LN(x + f(x)).
        norm_eps (float): Epsilon of the LayerNorms.
        ffn_ratio (float): Hidden channels of the FFN over C.
        act_cfg (dict): Activation of the FFN.
        ffn_conv (bool): Adds a 3 x 3 depthwise convolution of the FFN's hidden channels
            to them.
        ffn_conv_act (bool): Repeats the activation after it.
        position_convs (int): Conditional positional encodings, 3 x 3 depthwise
            convolutions that are added to the tokens outside of stochastic depth
            (arXiv 2102.10882): 1 before the attention, 2 before the FFN too.
        drop (float): Dropout rate on the attention's output and in the FFN.
        drop_path (float): Rate of stochastic depth.
        layer_scale (float, optional): Start of the LayerScale factors.
        attn_scale (bool): AttnScale in the attention.
        feat_scale (bool): FeatScale on the attention's output.

    Raises:
        ValueError: If ``norm_placement`` is neither 'pre' nor 'post', or
            ``position_convs`` is not in 0...2.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attention: dict,
        norm_placement: str = 'pre',
        norm_eps: float = 1e-6,
        ffn_ratio: float = 4.0,
        act_cfg: dict = dict(type='GELU'),
        ffn_conv: bool = False,
        ffn_conv_act: bool = False,
        position_convs: int = 0,
        drop: float = 0.0,
        drop_path: float = 0.0,
        layer_scale: Optional[float] = None,
        attn_scale: bool = False,
        feat_scale: bool = False,
    ) -> None:
        super().__init__()
        if norm_placement not in ('pre', 'post'):
            raise ValueError(
                f"norm_placement must be 'pre' or 'post', got {norm_placement!r}"
            )
        if position_convs not in (0, 1, 2):
            raise ValueError(f'position_convs must be in 0...2, got {position_convs!r}')
        self.pre_norm = norm_placement == 'pre'
        self.cpe1 = DepthwiseConv(embed_dims) if position_convs else None
        self.norm1 = nn.LayerNorm(embed_dims, eps=norm_eps)
        self.attn = build_model(
            attention, embed_dims=embed_dims, num_heads=num_heads, attn_scale=attn_scale
        )
        self.drop = nn.Dropout(drop)
        self.feat_scale = FeatScale(embed_dims) if feat_scale else nn.Identity()
        self.cpe2 = DepthwiseConv(embed_dims) if position_convs == 2 else None
        self.norm2 = nn.LayerNorm(embed_dims, eps=norm_eps)
        hidden_dims = int(embed_dims * ffn_ratio)
        # names are those of mmcv's FFN, whose module imports all of mmcv.ops
        first = nn.Sequential(
            nn.Linear(embed_dims, hidden_dims),
            build_activation(act_cfg),
            nn.Dropout(drop),
        )
        layers = nn.Sequential(
            first, nn.Linear(hidden_dims, embed_dims), nn.Dropout(drop)
        )
        self.ffn = nn.ModuleDict(dict(layers=layers))
        self.ffn_conv = DepthwiseConv(hidden_dims) if ffn_conv else None
        self.ffn_conv_act = nn.Identity()
        if ffn_conv_act:
            self.ffn_conv_act = build_activation(act_cfg)
        scales: list[nn.Module] = [nn.Identity(), nn.Identity()]
        if layer_scale is not None:
            scales = [LayerScale(embed_dims, scale=layer_scale) for _ in scales]
        self.scale1, self.scale2 = scales
        self.drop_path = DropPath(drop_path) if drop_path else nn.Identity()

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        x = self.encode_positions(self.cpe1, x, hw_shape)
        if self.pre_norm:
            # some attentions read the input before the norm
            reads_shortcut = getattr(self.attn, 'reads_shortcut', False)
            options = dict(shortcut=x) if reads_shortcut else {}
            x = x + self.attention(self.norm1(x), hw_shape, **options)
            x = self.encode_positions(self.cpe2, x, hw_shape)
            return x + self.feed_forward(self.norm2(x), hw_shape)
        x = self.norm1(x + self.attention(x, hw_shape))
        x = self.encode_positions(self.cpe2, x, hw_shape)
        return self.norm2(x + self.feed_forward(x, hw_shape))

    def encode_positions(
        self, conv: Optional[DepthwiseConv], x: Tensor, hw_shape: HW
    ) -> Tensor:
        """Add a convolution of tokens to them, if there is one."""
        if conv is None:
            return x
        # tokens have no norm here, see Embedding
        with autocast_disabled(x):
            x = x.to(conv.weight.dtype)
            return x + conv(x, hw_shape)

    def attention(self, x: Tensor, hw_shape: HW, **options: Any) -> Tensor:
        """Apply attention, dropout, FeatScale, LayerScale and stochastic depth."""
        x = self.feat_scale(self.drop(self.attn(x, hw_shape, **options)))
        return self.drop_path(self.scale1(x))

    def feed_forward(self, x: Tensor, hw_shape: Optional[HW] = None) -> Tensor:
        """Apply FFN, LayerScale and stochastic depth."""
        # not FFN's own forward: its decorators stop torch.compile in torch 2.1
        layers = self.ffn.layers
        x = layers[0](x)
        if self.ffn_conv is not None:
            x = self.ffn_conv_act(x + self.ffn_conv(x, hw_shape))
        return self.drop_path(self.scale2(layers[2](layers[1](x))))
