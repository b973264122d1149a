"""CaiT."""

from typing import Optional

import torch
from torch import Tensor, nn

from mmlinattn.parts import register

from ..layers.blocks import TransformerBlock
from ..layers.initialization import BaseModule, ModuleList
from ..layers.positions import learned_table
from ..layers.types import HW
from .defaults import with_defaults
from .isotropic import IsotropicTransformer


class ClassBlock(TransformerBlock):
    """Updates only the class token: (B, 1 + N, C) to (B, 1 + N, C)."""

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        token, rest = x[:, :1], x[:, 1:]
        token = token + self.attention(self.norm1(x), hw_shape)[:, :1]
        token = token + self.feed_forward(self.norm2(token))
        return torch.cat((token, rest), dim=1)


@register
class CaiT(IsotropicTransformer):
    """Class-attention in image Transformers (*Going deeper with Image
    Transformers*, arXiv 2103.17239).

    Talking heads mix maps of N x N weights, which are in memory: a training step keeps
    three of them for each head and layer. With 4,200 tokens, 800 x 1344 pixels, a map
    has 71 MB in float32, and those of XXS24 41 GB for two images. With ``with_cp``,
    maps of one layer at a time are in memory.

    The class layers exist with ``out_type`` 'cls_token' or 'raw' only, because no map
    depends on them.

    Args:
        arch (str | dict): 'xxs24', 's24', or a dict with ``embed_dims``,
            ``num_layers``, ``num_heads`` and ``num_class_layers``.
        block (dict): ``layer_scale``, the start of the LayerScale factors.
        Others: See :class:`~.isotropic.IsotropicTransformer`.
    """

    arch_zoo = {
        'xxs24': dict(embed_dims=192, num_layers=24, num_heads=4, num_class_layers=2),
        's24': dict(embed_dims=384, num_layers=24, num_heads=8, num_class_layers=2),
    }
    arch_keys = (*IsotropicTransformer.arch_keys, 'num_class_layers')

    __init__ = with_defaults(
        IsotropicTransformer.__init__,
        arch='xxs24',
        attention=dict(type='TalkingHeadsAttention'),
        with_cls_token=False,
        block=dict(layer_scale=1e-5),
        constant_drop_path=True,
    )

    def add_class_layers(self, arch: dict, block: dict) -> None:
        self.class_layers: Optional[ClassLayers] = None
        if self.out_type in ('cls_token', 'raw'):
            sizes = arch['embed_dims'], arch['num_heads'], arch['num_class_layers']
            self.class_layers = ClassLayers(*sizes, block.get('layer_scale'))

    def readout(
        self, x: Tensor, hw_shape: HW, norm: Optional[nn.Module] = None
    ) -> Tensor:
        # with 'raw', a returned layer may have no norm and no class token
        if self.class_layers is not None and norm is not None:
            x = self.class_layers(x, hw_shape)
        return super().readout(x, hw_shape, norm)


class ClassLayers(BaseModule):
    """Adds a class token to (B, N, C). The class token attends to all tokens."""

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        num_layers: int,
        layer_scale: Optional[float],
    ) -> None:
        super().__init__()
        self.cls_token = learned_table(1, 1, embed_dims)
        self.blocks = ModuleList(
            ClassBlock(
                embed_dims,
                num_heads,
                dict(type='ClassAttention'),
                layer_scale=layer_scale,
            )
            for _ in range(num_layers)
        )

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        x = torch.cat((self.cls_token.expand(x.size(0), -1, -1), x), dim=1)
        for block in self.blocks:
            x = block(x, hw_shape)
        return x
