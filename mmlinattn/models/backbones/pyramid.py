"""The pyramid skeleton: stages of blocks, each on a smaller map.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

import math
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any, Optional, Union

import torch
from torch import Tensor, nn

from mmlinattn.functional import to_map, without_extra_tokens
from mmlinattn.functional.precision import is_autocast_to_float16
from mmlinattn.functional.tracing import is_transformed
from mmlinattn.parts import build_model, register

from ..layers.blocks import TransformerBlock, drop_path_rates
from ..layers.initialization import BaseModule, ModuleList
from ..layers.padding import after_stride, by_size, pad_to, trains_batch_norm
from ..layers.positions import PositionTable, embed_tokens, learned_table
from ..layers.types import HW, Indices
from .base import BaseBackbone
from .options import check_config, square_image_side

# Largest input of a projection to float16; with trained weights, larger tokens leave
# float16's range, 65504.
_LARGEST = 2.0**13


def with_heads(embed_dims: list[int], depths: list[int]) -> dict:
    """Return an architecture whose heads have 32 channels."""
    num_heads = [dims // 32 for dims in embed_dims]
    return dict(embed_dims=embed_dims, depths=depths, num_heads=num_heads)


def per_stage(value: Any, num_stages: int, name: str) -> list:
    """Return one entry for every stage: another value than a list is repeated, and a
    list of another length is a ValueError."""
    if not isinstance(value, (list, tuple)):
        return [value] * num_stages
    if len(value) != num_stages:
        raise ValueError(
            f'{name} needs one entry for each of {num_stages} stages, got '
            f'{len(value)}: {value}'
        )
    return list(value)


def are_sizes_of_stages(sizes: list[Any]) -> bool:
    """Return whether these are lists with one positive integer for each stage."""
    if not all(isinstance(of_stages, (list, tuple)) for of_stages in sizes):
        return False
    lengths = {len(of_stages) for of_stages in sizes}
    return len(lengths) == 1 and lengths != {0} and all(map(are_positive, sizes))


def are_positive(numbers: Sequence[Any]) -> bool:
    """Return whether all of these are positive integers."""
    return all(isinstance(number, int) and number > 0 for number in numbers)


def attention_pattern(entry: Any) -> list[dict]:
    """Return the attentions that repeat over a stage's blocks: one, or those of a
    list."""
    entries = entry if isinstance(entry, (list, tuple)) else [entry]
    return [check_config(cfg, 'attention') for cfg in entries]


class PyramidStage(BaseModule):
    """Embedding, positions, class token and blocks of one stage."""

    def __init__(
        self,
        embedding: nn.Module,
        embed_dims: int,
        blocks: Sequence[nn.Module],
        map_side: Optional[int] = None,
        with_cls_token: bool = False,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.pos_embed = None
        if map_side is not None:
            self.pos_embed = PositionTable(
                embed_dims, (map_side, map_side), num_extra=int(with_cls_token)
            )
        self.cls_token = None
        if with_cls_token:
            self.cls_token = learned_table(1, 1, embed_dims)
        self.drop = nn.Dropout(drop)
        self.blocks = ModuleList(blocks)
        # there is no norm between the embedding and the first projection
        self.reads_embedding = not all(
            getattr(block, 'pre_norm', True) for block in self.blocks[:1]
        )

    def to_tokens(self, x: Tensor) -> tuple[Tensor, HW]:
        """Turn the embedding's map (B, C, H, W) into tokens, extra ones first, and (H,
        W)."""
        if self.reads_embedding and is_autocast_to_float16(x):
            x = x.clamp(-_LARGEST, _LARGEST)
        x, hw_shape = embed_tokens(x, self.pos_embed, self.cls_token)
        return self.drop(x), hw_shape


@register
class PyramidTransformer(BaseBackbone):
    """A pyramid of any attention, described by its config alone.

    Args:
        arch (str | dict): ``embed_dims``, ``depths`` and ``num_heads``, lists with
            one entry per stage; one number of ``embed_dims`` doubles from stage to
            stage. A subclass with an ``arch_zoo`` takes its names, too.
        in_channels (int): Channels of the input image.
        stem (dict): Config of the first embedding. An embedding has an integer
            attribute ``stride``.
        merging (dict): Config of the embeddings between stages.
        attention (dict | list): Config of the attention, or a list with one
            per stage; an entry that is a list is a pattern, repeated over the
            stage's blocks.
        block (dict | list[dict]): Options of
            :class:`~.blocks.TransformerBlock`, for all stages or for each.
        img_size (int | tuple[int], optional): Side of the square images that
            learned position tables are made for, one per stage; None leaves them
            out.
        with_cls_token (bool): Adds a class token to the last stage. It is not
            part of the returned maps.
        out_norm (str, optional): 'last' normalizes the last stage's map; 'all'
            normalizes every returned map by a LayerNorm of its own; None normalizes
            none.
        norm_eps (float): Epsilon of these LayerNorms.
        drop_rate (float): Dropout rate after positions, projections and in
            the FFN.
        drop_path_rate (float): Largest rate of stochastic depth; it grows
            linearly from 0 over the blocks.
        norm_cfg (dict, optional): Norm layer of the embeddings whose configs have
            none. Default: BatchNorm.
        attn_scale (bool): AttnScale in every attention.
        feat_scale (bool): FeatScale in every block.
        Others: See :class:`~.base.BaseBackbone`.

    Raises:
        ValueError: If an argument is wrong. The message has its name and value.
    """

    arch_keys = ('embed_dims', 'depths', 'num_heads')

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        in_channels: int = 3,
        stem: dict = dict(type='ConvStem'),
        merging: dict = dict(type='ConvEmbedding'),
        attention: Union[str, dict, Sequence] = dict(type='SoftmaxAttention'),
        block: Union[dict, list[dict]] = dict(),
        img_size: Union[int, HW, None] = None,
        with_cls_token: bool = False,
        out_norm: Optional[str] = 'last',
        norm_eps: float = 1e-6,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        norm_cfg: Optional[dict] = None,
        attn_scale: bool = False,
        feat_scale: bool = False,
        *,
        out_indices: Optional[Indices] = None,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        mask_padding: Union[bool, str] = 'evaluation',
        init_cfg: Union[dict, list, None] = None,
    ) -> None:
        side = None if img_size is None else square_image_side(img_size)
        arch = self.resolve_arch(arch)
        dims, depths, heads = (tuple(arch[key]) for key in self.arch_keys)
        num_stages = len(dims)
        super().__init__(
            in_channels,
            num_stages,
            with_cls_token=with_cls_token,
            out_indices=out_indices,
            out_type=out_type,
            frozen_stages=frozen_stages,
            norm_eval=norm_eval,
            with_cp=with_cp,
            mask_padding=mask_padding,
            init_cfg=init_cfg,
        )
        self.depths = depths
        stem, merging = check_config(stem, 'stem'), check_config(merging, 'merging')
        attention = per_stage(attention, num_stages, 'attention')
        patterns = [attention_pattern(entry) for entry in attention]
        norm_cfg = norm_cfg and check_config(norm_cfg, 'norm_cfg')
        self.check_norm_cfg(norm_cfg, stem, merging)
        block = per_stage(block, num_stages, 'block')
        rates = iter(drop_path_rates(drop_path_rate, sum(depths)))
        self.stage_channels = dims
        self.stage_strides: tuple[int, ...] = ()

        self.stages = ModuleList()
        stride = 1
        for i in range(num_stages):
            embedding = build_model(
                merging if i else stem,
                in_channels=dims[i - 1] if i else in_channels,
                embed_dims=dims[i],
                norm_cfg=norm_cfg or dict(type='BN'),
            )
            stride *= embedding.stride
            self.stage_strides += (stride,)
            if side is not None:
                side = math.ceil(side / embedding.stride)
            blocks = [
                TransformerBlock(
                    dims[i],
                    heads[i],
                    attention_cfg,
                    drop=drop_rate,
                    drop_path=next(rates),
                    attn_scale=attn_scale,
                    feat_scale=feat_scale,
                    **block[i],
                )
                for attention_cfg in islice(cycle(patterns[i]), depths[i])
            ]
            self.stages.append(
                PyramidStage(
                    embedding,
                    dims[i],
                    blocks,
                    side,
                    with_cls_token and i == num_stages - 1,
                    drop_rate,
                )
            )
        self.add_out_norms(out_norm, norm_eps)
        self.freeze()

    def check_norm_cfg(
        self, norm_cfg: Optional[dict], stem: dict, merging: dict
    ) -> None:
        """Refuse, by a ValueError, a norm layer that no embedding would have."""
        if norm_cfg and 'norm_cfg' in stem and 'norm_cfg' in merging:
            raise ValueError(
                f'norm_cfg={norm_cfg} would change nothing: the embeddings of this '
                f'{type(self).__name__} have norm layers of their own; give '
                'patch_embed and merging'
            )

    def add_out_norms(self, out_norm: Optional[str], eps: float) -> None:
        """Add LayerNorms of returned maps: all, that of the last stage, or none."""
        if out_norm not in ('last', 'all', None):
            raise ValueError(
                f"out_norm must be 'last', 'all' or None, got {out_norm!r}"
            )
        for i in self.out_indices:
            if out_norm == 'all' or (out_norm and i == self.num_stages - 1):
                self.add_norm(i, self.stage_channels[i], eps)

    @classmethod
    def resolve_arch(cls, arch: Union[str, dict]) -> dict:
        arch = super().resolve_arch(arch)
        dims, depths = arch['embed_dims'], arch['depths']
        if isinstance(dims, int) and isinstance(depths, (list, tuple)):
            arch['embed_dims'] = [dims * 2**i for i in range(len(depths))]
        if not are_sizes_of_stages([arch[key] for key in cls.arch_keys]):
            raise ValueError(
                f'{", ".join(cls.arch_keys)} of arch need one positive integer for '
                f'each stage, got arch={arch}'
            )
        return arch

    def run(self, x: Tensor, sizes: Optional[list[HW]] = None) -> tuple[Tensor, ...]:
        if not is_transformed():  # vmap knows no layouts
            # on a CPU, convolutions are faster this way, and tokens are contiguous
            x = x.contiguous(memory_format=torch.channels_last)
        outs: list[Tensor] = []
        for stage, (is_returned, norm) in zip(self.stages, self.returned()):
            if sizes is None:
                x, *out = self.run_blocks(stage, is_returned, norm, stage.embedding(x))
            else:
                x, *out = self.run_by_size(stage, is_returned, norm, x, sizes)
                sizes = after_stride(sizes, stage.embedding.stride)
            outs += out
        return tuple(outs)

    def run_by_size(
        self,
        stage: PyramidStage,
        is_returned: bool,
        norm: Optional[nn.Module],
        x: Tensor,
        sizes: list[HW],
    ) -> list[Tensor]:
        """Return the output of :meth:`run_blocks` for the stage's input (B, C', H',
        W'), which is zero beyond its ``sizes``."""
        stride = stage.embedding.stride
        (canvas,) = after_stride(((x.size(2), x.size(3)),), stride)

        def on_canvas(maps: Tensor) -> list[Tensor]:
            hw_shape = (maps.size(2), maps.size(3))
            x, *outs = self.run_blocks(stage, is_returned, norm, maps)
            outs = [self.lay_back(out, hw_shape, canvas) for out in outs]
            return [pad_to(x, canvas), *outs]

        # processes and images share the statistics of a BatchNorm
        if trains_batch_norm(stage.embedding):
            maps = stage.embedding(x)
            return by_size(on_canvas, maps, after_stride(sizes, stride))
        return by_size(lambda images: on_canvas(stage.embedding(images)), x, sizes)

    def run_blocks(
        self,
        stage: PyramidStage,
        is_returned: bool,
        norm: Optional[nn.Module],
        x: Tensor,
    ) -> list[Tensor]:
        """Return the map (B, C, H, W) of a stage after its blocks, for that of its
        embedding, and, if it is returned, the stage's output."""
        x, hw_shape = stage.to_tokens(x)
        for block in stage.blocks:
            x = self.run_block(block, x, hw_shape)
        out = [self.readout(x, hw_shape, norm)] if is_returned else []
        x = without_extra_tokens(x, hw_shape)
        return [to_map(x, hw_shape), *out]

    def parts(self) -> list[nn.Module]:
        return [stage.blocks for stage in self.stages]

    def stage_of(self, param_name: str) -> int:
        parts = param_name.split('.')
        if parts[0] != 'stages' or not parts[1]:
            return self.num_stages
        stage = int(parts[1])
        return stage if stage or parts[2:3] == ['blocks'] else -1

    def layer_of(self, param_name: str) -> tuple[int, int]:
        num_layers = sum(self.depths) + 2
        stage = self.stage_of(param_name)
        if stage == -1:
            return 0, num_layers
        if stage == self.num_stages:
            return num_layers - 1, num_layers
        parts = param_name.split('.')
        block = int(parts[3]) if parts[2] == 'blocks' else 0
        return sum(self.depths[:stage]) + block + 1, num_layers
