"""Makes a pyramid from one map."""

from collections.abc import Sequence
from typing import Optional, Union

from torch import Tensor, nn

from mmlinattn.parts import register

from ..layers.embeddings import LayerNorm2d
from ..layers.initialization import BaseModule, ModuleList


@register
class SimpleFeaturePyramid(BaseModule):
    """Pyramid from the last map of a plain backbone (*Exploring Plain Vision
    Transformer Backbones for Object Detection*, arXiv 2203.16527).

    Each level resizes the map on its own, without lateral connections: up by
    transposed convolutions, down by max-pooling. A 1 x 1 and a 3 x 3 convolution
    follow, each with a LayerNorm over channels.

    Args:
        in_channels (int): Channels of the map.
        out_channels (int): Channels of all levels.
        scales (Sequence[float]): Size of each level relative to the map: 4, 2,
            1 or 0.5.
        num_outs (int, optional): Number of levels. A level beyond ``scales``
            takes every other position of the level before. Default: one level
            per scale.
        init_cfg (dict, optional): Initial values, as in MMEngine.

    Raises:
        ValueError: If a scale is another number, or ``num_outs`` is less than the
            number of scales.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 256,
        scales: Sequence[float] = (4, 2, 1, 0.5),
        num_outs: Optional[int] = None,
        init_cfg: Union[dict, list, None] = dict(
            type='Xavier', layer=['Conv2d', 'ConvTranspose2d'], distribution='uniform'
        ),
    ) -> None:
        super().__init__(init_cfg)
        num_outs = len(scales) if num_outs is None else num_outs
        if num_outs < len(scales):
            raise ValueError(
                f'num_outs must be at least the number of scales, '
                f'{len(scales)}, got {num_outs}'
            )
        self.num_extra = num_outs - len(scales)
        self.extra = nn.MaxPool2d(1, stride=2)
        self.levels = ModuleList(
            self.level(in_channels, out_channels, scale) for scale in scales
        )

    @staticmethod
    def level(channels: int, out_channels: int, scale: float) -> nn.Sequential:
        """Return the layers from the map to one level."""
        half, quarter = channels // 2, channels // 4
        if scale == 4:
            resize = [
                nn.ConvTranspose2d(channels, half, 2, stride=2),
                LayerNorm2d(half, eps=1e-6),
                nn.GELU(),
                nn.ConvTranspose2d(half, quarter, 2, stride=2),
            ]
            channels = quarter
        elif scale == 2:
            resize = [nn.ConvTranspose2d(channels, half, 2, stride=2)]
            channels = half
        elif scale == 1:
            resize = []
        elif scale == 0.5:
            # ceil, as at the strides of a backbone
            resize = [nn.MaxPool2d(2, stride=2, ceil_mode=True)]
        else:
            raise ValueError(f'scales must be 4, 2, 1 or 0.5, got {scale}')
        return nn.Sequential(
            *resize,
            nn.Conv2d(channels, out_channels, 1, bias=False),
            LayerNorm2d(out_channels, eps=1e-6),
            nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
            LayerNorm2d(out_channels, eps=1e-6),
        )

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return ``num_outs`` maps (B, out_channels, H_i, W_i), the largest first, of a
        backbone's last map (B, in_channels, H, W)."""
        outs = [level(inputs[-1]) for level in self.levels]
        for _ in range(self.num_extra):
            outs.append(self.extra(outs[-1]))
        return tuple(outs)
