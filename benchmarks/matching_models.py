"""The model of matching.py, its attentions, and two controls that match nothing."""

from typing import Any

import common  # noqa: F401
from torch import Tensor, nn
from torch.nn.functional import pad

from mmlinattn.functional import gaussian_product
from mmlinattn.models import TransformerBlock
from mmlinattn.models.attentions.base import ProjectedAttention
from mmlinattn.models.layers.depthwise import DepthwiseConv
from mmlinattn.models.layers.types import HW

# channels, heads, blocks, side of the maps in training
CHANNELS, HEADS, DEPTH, SIDE = 64, 2, 2, 14


class MeanOfValues(ProjectedAttention):
    """The negative control: the mean of all values, for every query."""

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return v.mean(-2, keepdim=True).expand_as(v)


class GatedConvolution(ProjectedAttention):
    """What the local parts of attentions do alone: a 5 x 5 convolution of the values,
    gated by the queries."""

    def __init__(self, embed_dims: int, num_heads: int, **options: Any) -> None:
        super().__init__(embed_dims, num_heads, **options)
        self.conv = DepthwiseConv(embed_dims, kernel_size=5)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return q * self.conv(v, hw_shape)


class GaussianRows(ProjectedAttention):
    """The whole Gaussian kernel over its row sums: what averages as landmarks of the
    linear SOFT++ approximate. One projection serves queries and keys."""

    def __init__(self, embed_dims: int, num_heads: int, **options: Any) -> None:
        super().__init__(embed_dims, num_heads, shared_qk=True, lepe=True, **options)

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        q = q / self.head_dims**0.25
        out = gaussian_product(q, q, pad(v, (0, 1), value=1.0))
        return out[..., :-1] / out[..., -1:]


PRINTED = dict(type='SoftmaxFreeAttention', sampling_ratio=2, kernel_size=3)
# as LinearSOFTPlusPlus has it
LINEAR = dict(
    PRINTED,
    attn_norm='rows',
    num_landmarks=49,
    solver='cholesky',
    ridge=0.001,
    relative_ridge=True,
)
ATTENTIONS: dict[str, dict[str, Any]] = {
    'softmax': dict(type='SoftmaxAttention'),
    'mean of values': dict(type=MeanOfValues),
    'linear SOFT++': LINEAR,
    'linear SOFT++, averages': dict(LINEAR, sampler='pool'),
    'exact Gaussian kernel, rows': dict(type=GaussianRows),
    'SOFT++': PRINTED,
    'ELFATT': dict(type='ELFATT', block_size=49),
    'efficient': dict(type='EfficientAttention', lepe=True),
    'agent': dict(type='AgentAttention', num_agents=49, map_side=SIDE),
    'focused': dict(type='FocusedLinearAttention', map_side=SIDE),
    'InLine': dict(type='InLineAttention'),
    'PolaFormer': dict(type='PolaFormerAttention', map_side=SIDE),
    'MLLA': dict(type='MLLAAttention'),
    'VSSD': dict(type='VSSDAttention'),
    'RALA': dict(type='RankAugmentedAttention'),
    'MALA': dict(type='MagnitudeAwareAttention'),
    'NaLaFormer': dict(type='NormAwareLinearAttention'),
    'ViT^3': dict(type='TTTAttention'),
    'Linformer': dict(type='LinformerAttention', sr_ratio=2),
    'Performer': dict(type='PerformerAttention', lepe=True),
    'Nyström': dict(type='NystromAttention', num_landmarks=49),
    'SOFT': dict(PRINTED, attn_norm=False),
    'windows': dict(type='WindowAttention'),
    'cross-shaped windows': dict(type='CrossShapedWindowAttention', stripe_width=2),
    'EfficientViT': dict(type='MultiScaleLinearAttention'),
    'convolution': dict(type=GatedConvolution),
}


class Matcher(nn.Module):
    """Tokens of a map to scores of values: two blocks without positions.

    Args:
        name (str): An attention of ``ATTENTIONS``.
        in_channels (int): Channels of the map.
        num_values (int): Scores of a token.
    """

    def __init__(self, name: str, in_channels: int, num_values: int) -> None:
        super().__init__()
        self.embed = nn.Linear(in_channels, CHANNELS)
        options = dict(embed_dims=CHANNELS, num_heads=HEADS, ffn_ratio=2.0)
        self.blocks = nn.ModuleList(
            TransformerBlock(attention=self.config(name, i), **options)
            for i in range(DEPTH)
        )
        self.norm = nn.LayerNorm(CHANNELS)
        self.head = nn.Linear(CHANNELS, num_values)

    @staticmethod
    def config(name: str, block: int) -> dict[str, Any]:
        """Return the config of an attention; every other block shifts its windows."""
        attention = dict(ATTENTIONS[name])
        if name == 'windows' and block % 2:
            attention['shift_size'] = 3
        return attention

    def forward(self, maps: Tensor) -> Tensor:
        """(B, H, W, channels) to (B, H, W, values)."""
        hw_shape = maps.shape[1], maps.shape[2]
        x = self.embed(maps.flatten(1, 2))
        for block in self.blocks:
            x = block(x, hw_shape)
        return self.head(self.norm(x)).unflatten(1, hw_shape)
