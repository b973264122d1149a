"""Whole models of the papers by name: attentions, stem and merging.

Swin and CSWin share this code.
"""

import math
from collections.abc import Collection, Sequence
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


class Preset(NamedTuple):
    """The model behind a name.

    Attributes:
        attention (callable): Takes the name of the architecture or None, its
            depths, and the options. Returns the attention of each stage.
        patch_embed (dict): Config of the first embedding.
        merging (dict): Config of the embeddings between stages.
        options (tuple[str]): Arguments of the backbone that ``attention`` takes.
    """

    attention: Callable
    patch_embed: dict = OVERLAPPING_STEM
    merging: dict = OVERLAPPING_MERGING
    options: tuple[str, ...] = ()


def repeat_last(attentions: list, num_stages: int) -> list:
    """Attentions of the first stages; all later stages have the last one."""
    last = len(attentions) - 1
    return [attentions[min(i, last)] for i in range(num_stages)]


def softmax(arch: Optional[str], depths: list[int]) -> list:
    """Softmax attention in all stages, of the GLOBAL models."""
    return [SOFTMAX] * len(depths)


def window_side(img_size: int) -> int:
    """Side of Swin's windows and width of CSWin's third stripes: the last stage's map.

    Raises:
        ValueError: If the image is smaller than 32 x 32.
    """
    if not isinstance(img_size, int) or img_size < 32:
        raise ValueError(
            f'img_size must be an integer of at least 32, got {img_size!r}'
        )
    return img_size // 32


def map_sides(img_size: int, num_stages: int) -> list[int]:
    """Sides of the maps of an image's stages."""
    return [math.ceil(img_size / (4 * 2**i)) for i in range(num_stages)]


def mixed(linear: list, softmax: dict = SOFTMAX) -> list:
    """ELFATT's arrangement: a linear attention; in the last stage but one
    softmax attention alternates with it and comes first; in the last stage
    there is softmax attention alone."""
    return [*linear[:-1], *([softmax, x] for x in linear[-1:]), softmax]


def elfatt(
    arch: Optional[str],
    depths: list[int],
    block_sizes: Union[int, Sequence[int]] = 196,
    split_ratio: float = 0.5,
    lepe: bool = True,
) -> list:
    """Attentions of the ELFATT models.

    Args:
        arch (str | None): Name of the architecture.
        depths (Sequence[int]): Its depths.
        block_sizes (int | Sequence[int]): Tokens in a block, for all stages but the
            last or for each of them.
        split_ratio (float): Share of the channels in the global half.
        lepe (bool): Adds positional encoding.
    """
    block_sizes = per_stage(block_sizes, len(depths) - 1, 'block_sizes')
    return mixed(
        [
            dict(
                type='ELFATT', block_size=block_size, split_ratio=split_ratio, lepe=lepe
            )
            for block_size in block_sizes
        ],
        dict(type='SoftmaxAttention', lepe=lepe),
    )


def efficient(arch: Optional[str], depths: list[int]) -> list:
    """Attentions of the EFFATT models."""
    linear = dict(type='EfficientAttention', lepe=True)
    return mixed([linear] * (len(depths) - 1))


# agents of the first three stages on ImageNet, and in the paper's detectors and
# segmentors
NUM_AGENTS = (9, 16, 49)
DENSE_AGENTS = (81, 144, 196)


def agents(
    num_stages: int, img_size: int = 224, dense_agents: bool = False
) -> list[dict]:
    """Agent attentions of the first stages, three at most."""
    num_stages = min(num_stages, 3)
    used = DENSE_AGENTS if dense_agents else (None,) * 3
    return [
        dict(type='AgentAttention', num_agents=n, map_side=side, used_agents=more)
        for n, side, more in zip(NUM_AGENTS, map_sides(img_size, num_stages), used)
    ]


def focused(num_stages: int, img_size: int = 224, **options: Any) -> list[dict]:
    """Focused linear attentions of the first stages, two at most."""
    return [
        {'type': 'FocusedLinearAttention', 'map_side': side, **options}
        for side in map_sides(img_size, min(num_stages, 2))
    ]


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
        ValueError: If ``arch`` or ``attention`` is unknown, or the attention lacks a
            given option.
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
        if isinstance(attention, str):
            attention = preset.attention(name, arch['depths'], **options)
        elif isinstance(attention, (list, tuple)):
            attention = [
                self.entry(x, name, arch['depths'], i) for i, x in enumerate(attention)
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
        name: Optional[str],
        depths: Sequence[int],
        stage: int,
        block: Optional[int] = None,
    ) -> Union[str, dict, Sequence]:
        """An entry of a list of attentions, by the word that stands for it."""
        if isinstance(x, (list, tuple)):
            return [self.entry(y, name, depths, stage, i) for i, y in enumerate(x)]
        x = 'local' if x is None else x
        if not isinstance(x, str) or x not in self.presets or stage >= len(depths):
            return x
        found = self.presets[x].attention(name, depths)[stage]
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
