"""Whole models of the papers by name: attentions, stem and merging.

Swin and CSWin share this code.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional, Union

from ..layers.types import HW, Indices
from .options import square_image_side
from .pyramid import PyramidTransformer, per_stage

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
    """What the attention of a stage depends on."""

    index: int
    num_stages: int
    arch: Optional[str] = None  # its name
    img_size: int = 224
    pad_small_map: bool = True  # of windows that shift

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
    """The model behind a name."""

    # from a Stage and the options to its attention, or to a list, a pattern over blocks
    attention: Callable
    patch_embed: dict = OVERLAPPING_STEM
    merging: dict = OVERLAPPING_MERGING
    options: tuple[str, ...] = ()  # of the backbone that ``attention`` takes


def softmax(stage: Stage) -> dict:
    """Return softmax attention for all stages, as in the GLOBAL models."""
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
    """Return attentions of the ELFATT models."""
    block_sizes = per_stage(block_sizes, stage.num_stages - 1, 'block_sizes')
    linear = dict(
        type='ELFATT',
        block_size=[*block_sizes, None][stage.index],
        split_ratio=split_ratio,
        lepe=lepe,
    )
    return mixed(stage, linear, dict(type='SoftmaxAttention', lepe=lepe))


def efficient(stage: Stage) -> Union[dict, list]:
    """Return attentions of the EFFATT models."""
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


def leading(linear: Callable, local: Callable) -> Callable:
    """Return linear attentions for the first two stages, a model's own for the
    others."""

    def attention(stage: Stage) -> Union[dict, list]:
        return linear(stage) if stage.index < 2 else local(stage)

    return attention


# options of these models
ELFATT_OPTIONS = ('block_sizes', 'split_ratio', 'lepe')


class PresetTransformer(PyramidTransformer):
    """A pyramid whose attention, stem and merging have a common name.

    A subclass has architectures (``arch_zoo``) and presets (``presets``); the preset
    'local' is the subclass's own model.

    Args:
        arch (str | dict): One of ``arch_zoo``, or a dict, see
            :class:`~.pyramid.PyramidTransformer`.
        attention (str | dict | list): One of ``presets``. Or the config of an
            attention, or a list with one per stage, whose entries may be lists,
            patterns over the stage's blocks, in place of that of 'local'. An entry
            of a list may be one of ``presets``, for its attention of that stage, the
            name of an attention, or None, for 'local'.
        patch_embed (dict, optional): Config of the first embedding. Default: that
            of the preset.
        merging (dict, optional): Config of the embeddings between stages, likewise.
        img_size (int | tuple[int], optional): Side of the square images that
            the windows and stripes, stored biases and positions of a preset are made
            for (stored ones are resized for other images). Default: 224.
        block_sizes (int | Sequence[int], optional): Tokens in a block of 'elfatt', for
            all stages but the last or for each of them.
        split_ratio, lepe (optional): See :class:`~..attentions.elfatt.ELFATT`.
        dense_agents (bool, optional): As many agents as in the paper's detectors, in
            Swin's 'agent'.
        pad_small_map (bool): What the presets' shifted windows do on small maps, see
            :class:`~..attentions.window.WindowAttention`: True, as detectors and
            segmentors; False, as classifiers. CSWin has none that shift.
        Others: See :class:`~.pyramid.PyramidTransformer`.

    Raises:
        ValueError: If ``arch`` or ``attention`` is unknown, ``img_size`` is below 32,
            or the attention lacks a given option.
    """

    presets: dict[str, Preset] = {}

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        attention: Union[str, dict, list] = 'local',
        patch_embed: Optional[dict] = None,
        merging: Optional[dict] = None,
        img_size: Union[int, HW, None] = None,
        block_sizes: Union[int, Sequence[int], None] = None,
        split_ratio: Optional[float] = None,
        lepe: Optional[bool] = None,
        dense_agents: Optional[bool] = None,
        pad_small_map: bool = True,
        *,
        in_channels: int = 3,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        norm_cfg: Optional[dict] = None,
        attn_scale: bool = False,
        feat_scale: bool = False,
        out_indices: Optional[Indices] = None,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        mask_padding: Union[bool, str] = 'evaluation',
        init_cfg: Union[dict, list, None] = None,
    ) -> None:
        name = arch if isinstance(arch, str) else None
        arch = self.resolve_arch(arch)
        options = dict(
            img_size=img_size,
            block_sizes=block_sizes,
            split_ratio=split_ratio,
            lepe=lepe,
            dense_agents=dense_agents,
        )
        options = {key: value for key, value in options.items() if value is not None}
        preset = self.find_preset(attention, options)
        side = square_image_side(options.pop('img_size', 224), smallest=32)
        num_stages = len(arch['depths'])
        stages = [
            Stage(i, num_stages, name, side, pad_small_map) for i in range(num_stages)
        ]
        if isinstance(attention, str):
            attention = [preset.attention(stage, **options) for stage in stages]
        elif isinstance(attention, (list, tuple)):
            entries = per_stage(attention, num_stages, 'attention')
            attention = [
                self.resolve_entry(entry, stage)
                for entry, stage in zip(entries, stages)
            ]
        super().__init__(
            arch,
            stem=patch_embed or preset.patch_embed,
            merging=merging or preset.merging,
            attention=attention,
            block=dict(norm_eps=1e-5),
            norm_eps=1e-5,
            out_norm='all',
            in_channels=in_channels,
            drop_rate=drop_rate,
            drop_path_rate=drop_path_rate,
            norm_cfg=norm_cfg,
            attn_scale=attn_scale,
            feat_scale=feat_scale,
            out_indices=out_indices,
            out_type=out_type,
            frozen_stages=frozen_stages,
            norm_eval=norm_eval,
            with_cp=with_cp,
            mask_padding=mask_padding,
            init_cfg=init_cfg,
        )

    def resolve_entry(
        self, entry: Any, stage: Stage, block: Optional[int] = None
    ) -> Any:
        """Return an entry of a list of attentions, with configs in place of names of
        presets and of None."""
        if isinstance(entry, (list, tuple)):
            return [self.resolve_entry(cfg, stage, i) for i, cfg in enumerate(entry)]
        name = 'local' if entry is None else entry
        if not isinstance(name, str) or name not in self.presets:
            return entry
        attention = self.presets[name].attention(stage)
        # of a preset's pattern in a pattern, the block's own entry
        if block is not None and isinstance(attention, list):
            attention = attention[block % len(attention)]
        return attention

    def find_preset(self, attention: Any, options: Collection[str]) -> Preset:
        """Return the preset of an attention, which must take the given options."""
        is_name = isinstance(attention, str)
        if is_name and attention not in self.presets:
            raise ValueError(
                f'attention must be one of {sorted(self.presets)}, a config or a list '
                f'of configs, got {attention!r}'
            )
        preset = self.presets[attention if is_name else 'local']
        for key in options:
            takers = [
                name
                for name, preset_of_name in self.presets.items()
                if key == 'img_size' or key in preset_of_name.options
            ]
            if attention not in takers:
                raise ValueError(
                    f'{key} can only be given with attention in {takers}; the configs '
                    'of attentions have options of their own; got '
                    f'attention={attention!r}'
                )
        return preset
