"""Whole models of the papers by name: attentions, stem and merging.

Swin and CSWin share this code.
"""

import inspect
import math
from typing import Callable, NamedTuple

from .base import resolve_arch
from .pyramid import ARCH_KEYS, PyramidTransformer, per_stage, resolve_pyramid_arch

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
            depths, and options, which are arguments of the backbone. Returns the
            attention of each stage.
        patch_embed (dict): Config of the first embedding.
        merging (dict): Config of the embeddings between stages.
    """

    attention: Callable
    patch_embed: dict = OVERLAPPING_STEM
    merging: dict = OVERLAPPING_MERGING

    @property
    def options(self):
        """Names of the options that ``attention`` takes."""
        return [*inspect.signature(self.attention).parameters][2:]


def repeat_last(attentions, num_stages):
    """Attentions of the first stages; all later stages have the last one."""
    last = len(attentions) - 1
    return [attentions[min(i, last)] for i in range(num_stages)]


def softmax(arch, depths):
    """Softmax attention in all stages, of the GLOBAL models."""
    return [SOFTMAX] * len(depths)


def window_side(img_size):
    """Side of Swin's windows and width of CSWin's third stripes: the last stage's map.

    Raises:
        ValueError: If the image is smaller than 32 x 32.
    """
    if not isinstance(img_size, int) or img_size < 32:
        raise ValueError(
            f'img_size must be an integer of at least 32, got {img_size!r}'
        )
    return img_size // 32


def map_sides(img_size, num_stages):
    """Sides of the maps of an image's stages."""
    return [math.ceil(img_size / (4 * 2**i)) for i in range(num_stages)]


def mixed(linear, softmax=SOFTMAX):
    """ELFATT's arrangement: a linear attention; in the last stage but one
    softmax attention alternates with it and comes first; in the last stage
    there is softmax attention alone."""
    return [*linear[:-1], *([softmax, x] for x in linear[-1:]), softmax]


def elfatt(arch, depths, block_sizes=196, split_ratio=0.5, lepe=True):
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


def efficient(arch, depths):
    """Attentions of the EFFATT models."""
    linear = dict(type='EfficientAttention', lepe=True)
    return mixed([linear] * (len(depths) - 1))


# agents of the first three stages on ImageNet, and in the paper's detectors and
# segmentors
NUM_AGENTS = (9, 16, 49)
DENSE_AGENTS = (81, 144, 196)


def agents(num_stages, img_size=224, dense_agents=False):
    """Agent attentions of the first stages, three at most."""
    num_stages = min(num_stages, 3)
    used = DENSE_AGENTS if dense_agents else (None,) * 3
    return [
        dict(type='AgentAttention', num_agents=n, map_side=side, used_agents=more)
        for n, side, more in zip(NUM_AGENTS, map_sides(img_size, num_stages), used)
    ]


def focused(num_stages, img_size=224, **options):
    """Focused linear attentions of the first stages, two at most."""
    return [
        {'type': 'FocusedLinearAttention', 'map_side': side, **options}
        for side in map_sides(img_size, min(num_stages, 2))
    ]


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
        **kwargs: Options of the preset, which are the arguments of its function:
            ``block_sizes``, ``split_ratio`` and ``lepe`` of :func:`elfatt`;
            ``img_size`` of all but 'global', 'elfatt' and 'efficient', the side of the
            images that windows and stripes, stored biases and positions are made for
            (stored ones are resized for other images); ``dense_agents`` of Swin's
            'agent'. All others are those of :class:`~.pyramid.PyramidTransformer`.

    Raises:
        ValueError: If ``arch`` or ``attention`` is unknown, or the attention lacks a
            given option.
    """

    arch_zoo = {}
    presets = {}

    def __init__(
        self, arch='tiny', attention='local', patch_embed=None, merging=None, **kwargs
    ):
        name = arch if isinstance(arch, str) else None
        arch = dict(resolve_arch(arch, self.arch_zoo, ARCH_KEYS))
        dims, depths = arch['embed_dims'], arch['depths']
        if isinstance(dims, int) and isinstance(depths, (list, tuple)):
            arch['embed_dims'] = [dims * 2**i for i in range(len(depths))]
        arch = resolve_pyramid_arch(arch, {})
        preset, options = self.resolve_preset(attention, kwargs)
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

    def entry(self, x, name, depths, stage, block=None):
        """An entry of a list of attentions, by the word that stands for it."""
        if isinstance(x, (list, tuple)):
            return [self.entry(y, name, depths, stage, i) for i, y in enumerate(x)]
        x = 'local' if x is None else x
        if not isinstance(x, str) or x not in self.presets or stage >= len(depths):
            return x
        found = self.presets[x].attention(name, depths)[stage]
        inside = block is not None and isinstance(found, (list, tuple))
        return found[block % len(found)] if inside else found

    def resolve_preset(self, attention, kwargs):
        """The preset of an attention, and its options, removed from the arguments."""
        is_name = isinstance(attention, str)
        if is_name and attention not in self.presets:
            raise ValueError(
                f'attention must be one of {sorted(self.presets)}, a config or a list '
                f'of configs, got {attention!r}'
            )
        taken = {name: preset.options for name, preset in self.presets.items()}
        known = set().union(*taken.values())
        options = {key: kwargs.pop(key) for key in known & kwargs.keys()}
        options = {key: x for key, x in options.items() if x is not None}
        for key in options:
            if not is_name or key not in taken[attention]:
                names = [name for name in taken if key in taken[name]]
                raise ValueError(
                    f'{key} can only be given with attention in {names}; the configs '
                    'of attentions have options of their own; got '
                    f'attention={attention!r}'
                )
        return self.presets[attention if is_name else 'local'], options
