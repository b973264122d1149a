"""The isotropic skeleton: blocks of one width on one map.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

from typing import Optional, Union

from torch import Tensor, nn

from ..layers.blocks import TransformerBlock, drop_path_rates
from ..layers.embeddings import ConvEmbedding
from ..layers.initialization import ModuleList
from ..layers.padding import after_stride, by_size
from ..layers.positions import PositionTable, embed_tokens, learned_table
from ..layers.types import HW, Indices
from .base import BaseBackbone
from .options import check_config, square_image_side


def check_patches(patch_size: int, img_size: int, with_pos_embed: bool) -> None:
    """Refuse, by a ValueError, patches that do not fill an image for which a table of
    positions is made."""
    divides = 0 < patch_size <= img_size and img_size % patch_size == 0
    if patch_size < 1 or (with_pos_embed and not divides):
        raise ValueError(
            'patch_size must be positive and divide img_size, got '
            f'patch_size={patch_size} and img_size={img_size}'
        )


class IsotropicTransformer(BaseBackbone):
    """Patch embedding, positions and blocks of one width.

    A layer is a stage: ``out_indices`` and ``frozen_stages`` count layers.
    Every map that is returned has a LayerNorm of its own.

    Args:
        arch (str | dict): ``embed_dims``, ``num_layers`` and ``num_heads``, integers. A
            subclass with an ``arch_zoo`` takes its names, too.
        attention (dict): Config of the attention.
        img_size (int | tuple[int]): Side of the square images that the position table
            is made for.
        with_pos_embed (bool): Adds a table of learned positions.
        patch_size (int): Side of a patch; images are zero-padded to whole
            patches.
        in_channels (int): Channels of the input image.
        with_cls_token (bool): Puts a class token before the map's tokens.
        block (dict): Options of :class:`~.blocks.TransformerBlock`.
        norm_eps (float): Epsilon of the LayerNorms of the returned maps.
        drop_rate (float): Dropout rate after positions, projections and in
            the FFN.
        drop_path_rate (float): Largest rate of stochastic depth.
        constant_drop_path (bool): Uses the same rate in every block instead of
            one that grows linearly from 0.
        attn_scale (bool): AttnScale in every attention.
        feat_scale (bool): FeatScale in every block.
        num_layers (int, optional): A depth instead of the architecture's.
        Others: See :class:`~.base.BaseBackbone`. ``out_indices`` counts layers; the
            default is the last one.
    """

    arch_keys: tuple[str, ...] = ('embed_dims', 'num_layers', 'num_heads')

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        attention: dict = dict(type='SoftmaxAttention'),
        img_size: Union[int, HW] = 224,
        patch_size: int = 16,
        in_channels: int = 3,
        with_pos_embed: bool = True,
        with_cls_token: bool = True,
        block: dict = dict(),
        norm_eps: float = 1e-6,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        constant_drop_path: bool = False,
        attn_scale: bool = False,
        feat_scale: bool = False,
        num_layers: Optional[int] = None,
        *,
        out_indices: Optional[Indices] = None,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        mask_padding: Union[bool, str] = 'evaluation',
        init_cfg: Union[dict, list, None] = None,
    ) -> None:
        arch = self.resolve_arch(arch)
        if num_layers is not None:
            arch = self.resolve_arch(dict(arch, num_layers=num_layers))
        dims, num_layers, num_heads = (arch[key] for key in self.arch_keys[:3])
        attention = check_config(attention, 'attention')
        img_size = square_image_side(img_size)
        check_patches(patch_size, img_size, with_pos_embed)
        if out_indices is None:
            out_indices = (num_layers - 1,)
        # class layers may add the token after all others
        has_token = with_cls_token or 'num_class_layers' in arch
        super().__init__(
            in_channels,
            num_layers,
            with_cls_token=has_token,
            out_indices=out_indices,
            out_type=out_type,
            frozen_stages=frozen_stages,
            norm_eval=norm_eval,
            with_cp=with_cp,
            mask_padding=mask_padding,
            init_cfg=init_cfg,
        )
        self.embed_dims = dims
        self.stage_channels = (dims,) * num_layers
        self.stage_strides = (patch_size,) * num_layers
        self.patch_embed = ConvEmbedding(
            in_channels,
            dims,
            kernel_size=patch_size,
            stride=patch_size,
            norm_cfg=None,
            act_cfg=None,
        )
        self.cls_token = self.pos_embed = None
        if with_cls_token:
            self.cls_token = learned_table(1, 1, dims)
        side = img_size // patch_size
        if with_pos_embed:
            self.pos_embed = PositionTable(
                dims, (side, side), num_extra=int(with_cls_token), mode='bicubic'
            )
        self.drop = nn.Dropout(drop_rate)
        rates = drop_path_rates(drop_path_rate, num_layers)
        if constant_drop_path:
            rates = [drop_path_rate] * num_layers
        self.blocks = ModuleList(
            TransformerBlock(
                dims,
                num_heads,
                attention,
                drop=drop_rate,
                drop_path=rate,
                attn_scale=attn_scale,
                feat_scale=feat_scale,
                **block,
            )
            for rate in rates
        )
        for i in self.out_indices:
            self.add_norm(i, dims, norm_eps)
        self.add_class_layers(arch, block)
        self.freeze()

    @classmethod
    def resolve_arch(cls, arch: Union[str, dict]) -> dict:
        arch = super().resolve_arch(arch)
        for key, size in arch.items():
            if not isinstance(size, int) or size < 1:
                raise ValueError(
                    f'{key} of arch must be a positive integer, got {size!r} in '
                    f'arch={arch}'
                )
        return arch

    def add_class_layers(self, arch: dict, block: dict) -> None:
        """Add what follows the layers, if a subclass has it."""

    def run(self, x: Tensor, sizes: Optional[list[HW]] = None) -> tuple[Tensor, ...]:
        if sizes is None:
            return self.run_layers(self.patch_embed(x))
        canvas = (x.size(2), x.size(3))
        (map_canvas,) = after_stride((canvas,), self.patch_embed.stride)

        def run_layers(images: Tensor) -> list[Tensor]:
            maps = self.patch_embed(images)
            hw_shape = (maps.size(2), maps.size(3))
            outs = self.run_layers(maps)
            return [self.lay_back(out, hw_shape, map_canvas) for out in outs]

        return tuple(by_size(run_layers, x, sizes))

    def run_layers(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs for the map (B, C, H, W) of the patch embedding."""
        x, hw_shape = embed_tokens(x, self.pos_embed, self.cls_token)
        x = self.drop(x)
        outs = []
        for block, (is_returned, norm) in zip(self.blocks, self.returned()):
            x = self.run_block(block, x, hw_shape)
            if is_returned:
                outs.append(self.readout(x, hw_shape, norm))
        return tuple(outs)

    def parts(self) -> list[nn.Module]:
        return [self]

    def stage_of(self, param_name: str) -> int:
        parts = param_name.split('.')
        if parts[0] in ('patch_embed', 'pos_embed', 'cls_token'):
            return -1
        if parts[0] == 'blocks' and parts[1]:
            return int(parts[1])
        return self.num_stages

    def layer_of(self, param_name: str) -> tuple[int, int]:
        return self.stage_of(param_name) + 1, self.num_stages + 2
