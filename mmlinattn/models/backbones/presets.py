"""Whole models of the papers by name: attentions, stem and merging.

Swin and CSWin share this code.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional, Union

from typing_extensions import Unpack

from .base import resolve_arch
from .pyramid import (
    ARCH_KEYS,
    PyramidOptions,
    PyramidTransformer,
    per_stage,
    resolve_pyramid_arch,
)

LAYER_NORM = dict(type='LN', eps=1e-5)
# embeddings of CSWin, and of ELFATT's Swin
OVERLAPPING_STEM = dict(
    type='ConvEmbedding',
    kernel_size=7,
    stride=4,
    padding=2,
    norm_cfg=LAYER_NORM,
    act_cfg=None,
)
OVERLAPPING_MERGING = dict(
    type='ConvEmbedding', kernel_size=3, stride=2, norm_cfg=LAYER_NORM, act_cfg=None
)
# VaniATT in the ELFATT paper's tables
SOFTMAX = dict(type='SoftmaxAttention', lepe=True)


@dataclass(frozen=True)
class Stage:
    """What the attention of a stage depends on.

    Attributes:
        index (int): Number of the stage.
        num_stages (int): Stages of the model.
        arch (str, optional): Name of the model's architecture.
        img_size (int): Side of the images.
    """

    index: int
    num_stages: int
    arch: Optional[str] = None
    img_size: int = 224

    @property
    def map_side(self) -> int:
        """Side of the stage's map."""
        return math.ceil(self.img_size / (4 * 2**self.index))

    @property
    def window_side(self) -> int:
        """Side of Swin's windows and width of CSWin's third stripes: the map of the
        fourth stage."""
        return self.img_size // 32


class Preset(NamedTuple):
    """The model behind a name.

    Attributes:
        attention (callable): Takes a :class:`Stage` and the options to the attention
            of the stage, or to a list, a pattern over its blocks.
        patch_embed (dict): Config of the first embedding.
        merging (dict): Config of the embeddings between stages.
        options (tuple[str]): Arguments of the backbone that ``attention`` depends on.
    """

    attention: Callable
    patch_embed: dict = OVERLAPPING_STEM
    merging: dict = OVERLAPPING_MERGING
    options: tuple[str, ...] = ()


def softmax(stage: Stage) -> dict:
    """Softmax attention in all stages, of the GLOBAL models."""
    return SOFTMAX


def mixed(stage: Stage, linear: dict, softmax: dict = SOFTMAX) -> Union[dict, list]:
    """ELFATT's arrangement: a linear attention; in the last stage but one
    softmax attention alternates with it and comes first; in the last stage
    there is softmax attention alone."""
    left = stage.num_stages - 1 - stage.index
    return linear if left > 1 else [softmax, linear] if left == 1 else softmax


def elfatt(
    stage: Stage,
    block_sizes: Union[int, Sequence[int]] = 196,
    split_ratio: float = 0.5,
    lepe: bool = True,
) -> Union[dict, list]:
    """Attentions of the ELFATT models.

    Args:
        stage (Stage): The stage.
        block_sizes (int | Sequence[int]): Tokens in a block, for all stages but the
            last or for each of them.
        split_ratio (float): Share of the channels in the global half.
        lepe (bool): Adds positional encoding.
    """
    block_sizes = per_stage(block_sizes, stage.num_stages - 1, 'block_sizes')
    linear = dict(
        type='ELFATT',
        block_size=[*block_sizes, None][stage.index],
        split_ratio=split_ratio,
        lepe=lepe,
    )
    return mixed(stage, linear, dict(type='SoftmaxAttention', lepe=lepe))


def efficient(stage: Stage) -> Union[dict, list]:
    """Attentions of the EFFATT models."""
    return mixed(stage, dict(type='EfficientAttention', lepe=True))


# agents of the first three stages on ImageNet, and in the paper's detectors and
# segmentors
NUM_AGENTS = (9, 16, 49)
DENSE_AGENTS = (81, 144, 196)


def agents(stage: Stage, dense_agents: bool = False) -> dict:
    """Agent attention of one of the first three stages."""
    return dict(
        type='AgentAttention',
        num_agents=NUM_AGENTS[stage.index],
        map_side=stage.map_side,
        used_agents=DENSE_AGENTS[stage.index] if dense_agents else None,
    )


def focused(stage: Stage, **options: Any) -> dict:
    """Focused linear attention of a stage."""
    return {'type': 'FocusedLinearAttention', 'map_side': stage.map_side, **options}


# options of these models
SIZED = ('img_size',)
ELFATT_OPTIONS = ('block_sizes', 'split_ratio', 'lepe')


class PresetTransformer(PyramidTransformer):
    """A pyramid whose attention, stem and merging have a common name.

    A subclass has architectures (``arch_zoo``) and presets (``presets``); the preset
    'local' is the subclass's own model.

    Args:
        arch (str | dict): One of ``arch_zoo``, or a dict with ``embed_dims``, an
            integer that doubles from stage to stage or a list, ``depths`` and
            ``num_heads``.
        attention (str | dict | list): One of ``presets``. Or the config of an
            attention, or a list with one per stage, whose entries may be lists,
            patterns over the stage's blocks, in place of that of 'local'. An entry
            of a list may be one of ``presets``, for its attention of that stage, the
            name of an attention, or None, for 'local'.
        patch_embed (dict, optional): Config of the first embedding. Default: that
            of the preset.
        merging (dict, optional): Config of the embeddings between stages, likewise.
        img_size (int, optional): Side of the images that windows and stripes, stored
            biases and positions are made for (stored ones are resized for other
            images), of all presets but 'global', 'elfatt' and 'efficient'.
        block_sizes, split_ratio, lepe (optional): See :func:`elfatt`.
        dense_agents (bool, optional): As many agents as in the paper's detectors, in
            Swin's 'agent'.
        **kwargs: See :class:`~.pyramid.PyramidTransformer`.

    Raises:
        ValueError: If ``arch`` or ``attention`` is unknown, ``img_size`` is below 32,
            or the attention lacks a given option.
    """

    arch_zoo: dict[str, dict] = {}
    presets: dict[str, Preset] = {}

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        attention: Union[str, dict, list] = 'local',
        patch_embed: Optional[dict] = None,
        merging: Optional[dict] = None,
        img_size: Optional[int] = None,
        block_sizes: Union[int, Sequence[int], None] = None,
        split_ratio: Optional[float] = None,
        lepe: Optional[bool] = None,
        dense_agents: Optional[bool] = None,
        **kwargs: Unpack[PyramidOptions],
    ) -> None:
        name = arch if isinstance(arch, str) else None
        arch = dict(resolve_arch(arch, self.arch_zoo, ARCH_KEYS))
        dims, depths = arch['embed_dims'], arch['depths']
        if isinstance(dims, int) and isinstance(depths, (list, tuple)):
            arch['embed_dims'] = [dims * 2**i for i in range(len(depths))]
        arch = resolve_pyramid_arch(arch, {})
        given = dict(
            img_size=img_size,
            block_sizes=block_sizes,
            split_ratio=split_ratio,
            lepe=lepe,
            dense_agents=dense_agents,
        )
        options = {key: x for key, x in given.items() if x is not None}
        preset = self.find_preset(attention, options)
        side: Any = options.pop('img_size', 224)
        if not isinstance(side, int) or side < 32:
            raise ValueError(f'img_size must be an integer from 32 on, got {side!r}')
        num_stages = len(arch['depths'])
        if isinstance(attention, str):
            attention = [
                preset.attention(Stage(i, num_stages, name, side), **options)
                for i in range(num_stages)
            ]
        elif isinstance(attention, (list, tuple)):
            attention = [
                self.entry(x, Stage(i, num_stages, name))
                for i, x in enumerate(attention)
            ]
        super().__init__(
            arch,
            stem=patch_embed or preset.patch_embed,
            merging=merging or preset.merging,
            attention=attention,
            block=dict(norm_eps=1e-5),
            norm_eps=1e-5,
            out_norm='all',
            **kwargs,
        )

    def entry(
        self,
        x: Union[str, dict, Sequence, None],
        stage: Stage,
        block: Optional[int] = None,
    ) -> Union[str, dict, Sequence]:
        """An entry of a list of attentions, by the word that stands for it."""
        if isinstance(x, (list, tuple)):
            return [self.entry(y, stage, i) for i, y in enumerate(x)]
        x = 'local' if x is None else x
        preset = self.presets.get(x) if isinstance(x, str) else None
        if preset is None or stage.index >= stage.num_stages:
            return x
        found = preset.attention(stage)
        if block is None or not isinstance(found, (list, tuple)):
            return found
        return found[block % len(found)]

    def find_preset(
        self, attention: Union[str, dict, list], options: Collection[str]
    ) -> Preset:
        """The preset of an attention, which must take the given options."""
        own = self.presets['local']
        preset = self.presets.get(attention) if isinstance(attention, str) else own
        if preset is None:
            raise ValueError(
                f'attention must be one of {sorted(self.presets)}, a config or a list '
                f'of configs, got {attention!r}'
            )
        for key in options:
            if not isinstance(attention, str) or key not in preset.options:
                names = [name for name, x in self.presets.items() if key in x.options]
                raise ValueError(
                    f'{key} can only be given with attention in {names}; the configs '
                    'of attentions have options of their own; got '
                    f'attention={attention!r}'
                )
        return preset
