"""The decode head of EfficientViT's segmentors.

Legend: B batch, C channels, (H, W) map.
"""

from collections.abc import Sequence
from typing import Any, Optional, Union

try:
    from mmseg.models.decode_heads.decode_head import BaseDecodeHead
except ImportError as error:
    raise ImportError(
        'EfficientViTHead is a decode head of MMSegmentation, which cannot be imported '
        f"({error}): pip install 'mmlinattn[seg]'"
    ) from error
from torch import Tensor, nn

from mmlinattn.functional import resize
from mmlinattn.functional.precision import at_least_float32
from mmlinattn.parts import register

from ..layers.bottlenecks import conv_block
from ..layers.embeddings import conv_norm_act


@register
class EfficientViTHead(BaseDecodeHead):
    """Adds maps of several strides at the size of the largest one, and applies blocks
    with shortcuts (*EfficientViT: Multi-Scale Linear Attention for High-Resolution
    Dense Prediction*, arXiv 2205.14756).

    A 1 x 1 convolution with a norm takes each map to ``channels``, and bicubic
    interpolation to the size of the first one.

    Args:
        in_channels (Sequence[int]): Channels of the maps.
        channels (int): Channels of the blocks.
        num_classes (int): Number of classes.
        in_index (Sequence[int]): Numbers of the backbone's maps, the largest map first.
        num_blocks (int): Number of blocks.
        block (str): 'mb' for inverted bottlenecks, as in series B, or 'fused' for fused
            ones, as in series L.
        ratio (float): Hidden channels of a block over ``channels``.
        last_ratio (int, optional): Channels of another 1 x 1 convolution with a norm
            and an activation before the classes, over ``channels``. Default: none.
        norm_cfg (dict): Norm layer. The official series L has ``eps=1e-7``.
        act_cfg (dict): Activation layer. The official series L has
            ``dict(type='GELU', approximate='tanh')``.
        dropout_ratio, out_channels, threshold, loss_decode, ignore_index, sampler,
            align_corners, init_cfg: See MMSegmentation's ``BaseDecodeHead``.

    Attributes:
        channels (int): Channels of the last convolution's input.

    Raises:
        ValueError: If ``block`` is neither 'mb' nor 'fused'.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        channels: int,
        num_classes: int,
        in_index: Sequence[int] = (1, 2, 3),
        num_blocks: int = 3,
        block: str = 'mb',
        ratio: float = 4.0,
        last_ratio: Optional[int] = None,
        norm_cfg: dict = dict(type='BN'),
        act_cfg: dict = dict(type='HSwish'),
        dropout_ratio: float = 0.0,
        out_channels: Optional[int] = None,
        threshold: Optional[float] = None,
        loss_decode: Union[dict, Sequence[dict]] = dict(
            type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0
        ),
        ignore_index: Optional[int] = 255,
        sampler: Optional[dict] = None,
        align_corners: bool = False,
        init_cfg: Union[dict, list, None] = dict(
            type='TruncNormal', layer='Conv2d', std=0.02, bias=0.0
        ),
    ) -> None:
        if block not in ('mb', 'fused'):
            raise ValueError(f"block must be 'mb' or 'fused', got {block!r}")
        super().__init__(
            in_channels,
            channels * (last_ratio or 1),
            num_classes=num_classes,
            out_channels=out_channels,
            threshold=threshold,
            dropout_ratio=dropout_ratio,
            norm_cfg=norm_cfg,
            act_cfg=act_cfg,
            in_index=in_index,
            input_transform='multiple_select',
            loss_decode=loss_decode,
            ignore_index=ignore_index,
            sampler=sampler,
            align_corners=align_corners,
            init_cfg=init_cfg,
        )
        self.laterals = nn.ModuleList(
            conv_norm_act(dims, channels, norm_cfg, None, kernel_size=1, bias=False)
            for dims in in_channels
        )
        layers: dict[str, Any] = dict(norm_cfg=norm_cfg, act_cfg=act_cfg)
        self.blocks = nn.Sequential(
            *[
                conv_block(block, channels, channels, ratio, **layers)
                for _ in range(num_blocks)
            ]
        )
        self.last: nn.Module = nn.Identity()
        if last_ratio:
            self.last = conv_norm_act(
                channels, self.channels, **layers, kernel_size=1, bias=False
            )

    def forward(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return logits (B, classes, H, W) in the size of a backbone's first map."""
        maps = self._transform_inputs(inputs)
        x, *smaller = [layer(x) for layer, x in zip(self.laterals, maps)]
        size = (x.size(2), x.size(3))
        for other in at_least_float32(*smaller):
            x = x + resize(other, size, 'bicubic').to(x.dtype)
        return self.cls_seg(self.last(self.blocks(x)))
