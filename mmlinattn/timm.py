"""Our classifiers and backbones in timm, by name, once this module is imported.

A name consists of the class, the size, the attention or scaling, and the image's side
if that is not 224.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Optional, Union

from timm.models import (
    adapt_input_conv,
    build_model_with_cfg,
    generate_default_cfgs,
    is_model,
    register_model,
)
from timm.models._features import feature_take_indices
from torch import Tensor, nn
from torch.nn.functional import dropout

from . import hub, models
from .functional import to_map
from .registry import build_model
from .utils.quiet import quiet
from .weights import load_pretrained

# How names of a class begin, its first convolution, and whether its classifiers read
# a class token.
FAMILIES = {
    'soft': ('SOFT', 'stages.0.embedding.0.0', True),
    'softpp': ('SOFTPlusPlus', 'stages.0.embedding.0.0', True),
    'swin': ('SwinTransformer', 'stages.0.embedding.layer.0', False),
    'cswin': ('CSWinTransformer', 'stages.0.embedding.layer.0', False),
    'mlla': ('MLLA', 'stages.0.embedding.first.0', False),
    'ravlt': ('RAVLT', 'stages.0.embedding.0.0', False),
    'mavit': ('MAViT', 'stages.0.embedding.0.0', False),
    'hvittt': ('HViTTT', 'stages.0.embedding.first.0', False),
    'vittt': ('ViTTT', 'patch_embed.layer.0', False),
    'deit': ('VisionTransformer', 'patch_embed.layer.0', True),
    'cait': ('CaiT', 'patch_embed.layer.0', True),
}
# of parameters with axes; vectors have no weight decay in timm
NO_DECAY = re.compile(
    'pos_embed|cls_token|relative_position_bias_table|agent_bias|query_bias|focus_scale'
)
# the crops of CSWin's recipe, 0.9 and the whole
CROPPED_LESS = re.compile('c?swin_(tiny|base)_(?!inline|polaformer)')
# channels of the neck of classifiers whose last norm is a BatchNorm
NECKS = {'RAVLT': 1024, 'MAViT': 2048, 'HViTTT': None}
PREFIX = 'backbone.'
Indices = Union[int, list[int]]


def row(
    config: str,
    arch: str,
    attention: Optional[str] = None,
    img_size: Optional[int] = None,
    ending: str = '_in1k',
    **options: Any,
) -> tuple[str, dict[str, Any]]:
    """A config, and its backbone without the settings of the training."""
    given = dict(options, arch=arch, attention=attention, img_size=img_size)
    return config + ending, {key: x for key, x in given.items() if x is not None}


tuned = partial(row, ending='_finetune_in1k-384px')
deit = partial(row, arch='deit-small')
linear = partial(row, type='LinearSOFTPlusPlus')

# All classifiers that have configs. Ablations have none: see the test of this table.
MODELS = {
    'soft_huge': row('soft-h', 'huge'),
    'soft_huge_norm': row('soft-h-norm', 'huge', attn_norm=True),
    'soft_large': row('soft-l', 'large'),
    'soft_large_norm': row('soft-l-norm', 'large', attn_norm=True),
    'soft_medium': row('soft-m', 'medium'),
    'soft_medium_norm': row('soft-m-norm', 'medium', attn_norm=True),
    'soft_small': row('soft-s', 'small'),
    'soft_small_norm': row('soft-s-norm', 'small', attn_norm=True),
    'soft_tiny': row('soft-t', 'tiny'),
    'soft_tiny_norm': row('soft-t-norm', 'tiny', attn_norm=True),
    'softpp_large': row('softpp-l', 'large'),
    'softpp_large_linear': linear('softpp-l-linear', 'large'),
    'softpp_medium': row('softpp-m', 'medium'),
    'softpp_medium_linear': linear('softpp-m-linear', 'medium'),
    'softpp_micro_linear': linear('softpp-micro-linear', 'micro'),
    'softpp_small': row('softpp-s', 'small'),
    'softpp_small_linear': linear('softpp-s-linear', 'small'),
    'softpp_tiny': row('softpp-t', 'tiny'),
    'softpp_tiny_linear': linear('softpp-t-linear', 'tiny'),
    'swin_base_agent': row('swin-b-agent', 'base', 'agent'),
    'swin_base_agent_384': tuned('swin-b-agent', 'base', 'agent', 384),
    'swin_base_efficient': row('swin-b-efficient', 'base', 'efficient'),
    'swin_base_efficient_384': tuned('swin-b-efficient', 'base', 'efficient'),
    'swin_base_elfatt': row('swin-b-elfatt', 'base', 'elfatt'),
    'swin_base_elfatt_384': tuned('swin-b-elfatt', 'base', 'elfatt', block_sizes=576),
    'swin_base_flatten': row('swin-b-flatten', 'base', 'flatten'),
    'swin_base_flatten_384': tuned('swin-b-flatten', 'base', 'flatten', 384),
    'swin_base_global': row('swin-b-global', 'base', 'global'),
    'swin_base_global_384': tuned('swin-b-global', 'base', 'global'),
    'swin_base_inline': row('swin-b-inline', 'base', 'inline'),
    'swin_base_local': row('swin-b-local', 'base', 'local'),
    'swin_base_local_384': tuned('swin-b-local', 'base', 'local', 384),
    'swin_base_polaformer': row('swin-b-polaformer', 'base', 'polaformer'),
    'swin_small_attnscale': row('swin-s-attnscale', 'small', attn_scale=True),
    'swin_small_featscale': row('swin-s-featscale', 'small', feat_scale=True),
    'swin_small_inline': row('swin-s-inline', 'small', 'inline'),
    'swin_small_local': row('swin-s', 'small', 'local'),
    'swin_small_polaformer': row('swin-s-polaformer', 'small', 'polaformer'),
    'swin_tiny_agent': row('swin-t-agent', 'tiny', 'agent'),
    'swin_tiny_efficient': row('swin-t-efficient', 'tiny', 'efficient'),
    'swin_tiny_elfatt': row('swin-t-elfatt', 'tiny', 'elfatt'),
    'swin_tiny_flatten': row('swin-t-flatten', 'tiny', 'flatten'),
    'swin_tiny_global': row('swin-t-global', 'tiny', 'global'),
    'swin_tiny_inline': row('swin-t-inline', 'tiny', 'inline'),
    'swin_tiny_local': row('swin-t-local', 'tiny', 'local'),
    'swin_tiny_polaformer': row('swin-t-polaformer', 'tiny', 'polaformer'),
    'cswin_base_agent': row('cswin-b-agent', 'b36292', 'agent'),
    'cswin_base_agent_384': tuned('cswin-b-agent', 'b36292', 'agent', 384),
    'cswin_base_efficient': row('cswin-b-efficient', 'b36292', 'efficient'),
    'cswin_base_efficient_384': tuned('cswin-b-efficient', 'b36292', 'efficient'),
    'cswin_base_elfatt': row('cswin-b-elfatt', 'b36292', 'elfatt'),
    'cswin_base_elfatt_384': tuned(
        'cswin-b-elfatt', 'b36292', 'elfatt', block_sizes=576
    ),
    'cswin_base_flatten': row('cswin-b-flatten', 'b36292', 'flatten'),
    'cswin_base_flatten_384': tuned('cswin-b-flatten', 'b36292', 'flatten', 384),
    'cswin_base_global': row('cswin-b-global', 'b36292', 'global'),
    'cswin_base_global_384': tuned('cswin-b-global', 'b36292', 'global'),
    'cswin_base_inline': row('cswin-b-inline', 'b36292', 'inline'),
    'cswin_base_inline_384': tuned('cswin-b-inline', 'b36292', 'inline', 384),
    'cswin_base_local': row('cswin-b-local', 'b36292', 'local'),
    'cswin_base_local_384': tuned('cswin-b-local', 'b36292', 'local', 384),
    'cswin_small_inline': row('cswin-s-inline', 's36292', 'inline'),
    'cswin_tiny_agent': row('cswin-t-agent', 't24181', 'agent'),
    'cswin_tiny_efficient': row('cswin-t-efficient', 't24181', 'efficient'),
    'cswin_tiny_elfatt': row(
        'cswin-t-elfatt', 't24181', 'elfatt', block_sizes=(49, 49, 196)
    ),
    'cswin_tiny_flatten': row('cswin-t-flatten', 't24181', 'flatten'),
    'cswin_tiny_global': row('cswin-t-global', 't24181', 'global'),
    'cswin_tiny_inline': row('cswin-t-inline', 't24181', 'inline'),
    'cswin_tiny_local': row('cswin-t-local', 't24181', 'local'),
    'mlla_base': row('mlla-b', 'base'),
    'mlla_small': row('mlla-s', 'small'),
    'mlla_tiny': row('mlla-t', 'tiny'),
    'ravlt_base': row('ravlt-b', 'base'),
    'ravlt_large': row('ravlt-l', 'large'),
    'ravlt_small': row('ravlt-s', 'small'),
    'ravlt_tiny': row('ravlt-t', 'tiny'),
    'mavit_base': row('mavit-b', 'base'),
    'mavit_large': row('mavit-l', 'large'),
    'mavit_small': row('mavit-s', 'small'),
    'mavit_tiny': row('mavit-t', 'tiny'),
    'hvittt_base': row('hvittt-b', 'base'),
    'hvittt_small': row('hvittt-s', 'small'),
    'hvittt_tiny': row('hvittt-t', 'tiny'),
    'vittt_base': row('vittt-b', 'base'),
    'vittt_small': row('vittt-s', 'small'),
    'vittt_tiny': row('vittt-t', 'tiny'),
    'deit_s12': deit('deit-s12', num_layers=12),
    'deit_s12_attnscale': deit('deit-s12-attnscale', attn_scale=True, num_layers=12),
    'deit_s12_featscale': deit('deit-s12-featscale', feat_scale=True, num_layers=12),
    'deit_s24': deit('deit-s24', num_layers=24),
    'deit_s24_attnscale': deit('deit-s24-attnscale', attn_scale=True, num_layers=24),
    'deit_s24_featscale': deit('deit-s24-featscale', feat_scale=True, num_layers=24),
    'cait_s24': row('cait-s24', 's24'),
    'cait_s24_attnscale': row('cait-s24-attnscale', 's24', attn_scale=True),
    'cait_s24_featscale': row('cait-s24-featscale', 's24', feat_scale=True),
    'cait_xxs24': row('cait-xxs24', 'xxs24'),
    'cait_xxs24_attnscale': row('cait-xxs24-attnscale', 'xxs24', attn_scale=True),
    'cait_xxs24_featscale': row('cait-xxs24-featscale', 'xxs24', feat_scale=True),
}


def backbone_of(name: str) -> dict[str, Any]:
    """Config of the backbone of a model."""
    kind, _, _ = FAMILIES[name.partition('_')[0]]
    return {'type': kind, **MODELS[name][1]}


class TimmModel(nn.Module):
    """One of our classifiers with the methods of timm's.

    Its state dict is that of MMPretrain's classifier from the same config.

    Args:
        backbone: Config of the backbone.
        num_classes: Channels of the last layer; 0 leaves it out.
        in_chans: Channels of the image.
        global_pool: 'token', the class token, where there is one; 'avg', the mean of
            the map; '', none. Default: the first of these that the model has.
        img_size: Side of the images that position tables and windows are made for.
            Images of any other size from 32 x 32 on work, too.
        drop_rate: Dropout rate before the last layer.
        output_stride: 32; maps are never dilated.
        **options: Options of the backbone, such as ``drop_path_rate``.

    Raises:
        ValueError: If the pooling is unknown, the stride another one, or the backbone
            refuses an option.
    """

    def __init__(
        self,
        backbone: dict[str, Any],
        num_classes: int = 1000,
        in_chans: int = 3,
        global_pool: Optional[str] = None,
        img_size: Union[int, tuple[int, int], None] = None,
        drop_rate: float = 0.0,
        output_stride: int = 32,
        **options: Any,
    ) -> None:
        super().__init__()
        if output_stride != 32:
            raise ValueError(
                f'output_stride={output_stride} is not possible: there are no dilated '
                'maps; the strides are in feature_info'
            )
        kind = backbone['type']
        # the others have no tables of positions
        if img_size is not None and kind not in ('MLLA', *NECKS):
            side = img_size if isinstance(img_size, int) else max(img_size)
            options.update(img_size=side)
        options.update(in_channels=in_chans, out_type='raw')
        # nobody pads these batches, and black may be zero
        options.setdefault('mask_padding', False)
        if kind in NECKS:
            options.update(out_norm=None)
        if kind == 'SwinTransformer':  # these are classifiers
            options.setdefault('pad_small_map', False)
        self.backbone = model = build_model({**backbone, **options})
        # only the last stage's map has a norm, as in a classifier
        model.out_indices = tuple(range(model.num_stages))
        self.stages = 'stages' if hasattr(model, 'stages') else 'blocks'
        self.feature_info = [
            dict(num_chs=dims, reduction=stride, module=f'{PREFIX}{self.stages}.{i}')
            for i, (dims, stride) in enumerate(
                zip(model.feature_channels, model.feature_strides)
            )
        ]
        self.num_features = self.head_hidden_size = model.feature_channels[-1]
        self.neck: Optional[models.ConvPoolingNeck] = None
        if kind in NECKS:
            is_widest = (kind, backbone.get('arch')) == ('MAViT', 'large')
            channels = 2560 if is_widest else NECKS[kind]
            self.neck = models.ConvPoolingNeck(self.num_features, channels)
            self.head_hidden_size = self.neck.out_channels
        names = [name for name, _ in model.named_parameters()]
        self.has_token = any(name.endswith('cls_token') for name in names)
        self.global_pool = 'token' if self.has_token else 'avg'
        self.drop_rate = drop_rate
        self.head = nn.ModuleDict()
        self.reset_classifier(num_classes, global_pool)
        if not next(model.parameters()).is_meta:
            with quiet():  # MMEngine prints every parameter
                for part in filter(None, (model, self.neck)):
                    part.init_weights()

    def forward_features(self, x: Tensor) -> Tensor:
        """Images (B, in_chans, H, W) to the last map (B, C, H', W'), or, with a class
        token, to tokens (B, 1 + N, C)."""
        return self.read_last(self.backbone(x)[-1], x)

    def read_last(self, tokens: Tensor, x: Tensor) -> Tensor:
        """Tokens of the last stage, as :meth:`forward_features` returns them."""
        return tokens if self.has_token else self.to_map(tokens, x, -1)

    def to_map(self, tokens: Tensor, x: Tensor, stage: int) -> Tensor:
        """Tokens of a stage, of images x, without the class token as a map."""
        stride = self.backbone.feature_strides[stage]
        height, width = [(side + stride - 1) // stride for side in x.shape[2:]]
        tokens = tokens[:, tokens.size(1) - height * width :]
        return to_map(tokens, (height, width)).contiguous()

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """The output of :meth:`forward_features` to logits (B, num_classes) or, with
        ``pre_logits``, to the last layer's input."""
        if self.neck is not None:
            x = self.neck.layer(x)
        if self.global_pool == 'token':
            x = x[:, 0]
        elif self.global_pool:
            x = x[:, 1:].mean(1) if self.has_token else x.mean((2, 3))
        x = dropout(x, self.drop_rate, self.training)
        return x if pre_logits else self.head.fc(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(x))

    def forward_intermediates(
        self,
        x: Tensor,
        indices: Optional[Indices] = None,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: str = 'NCHW',
        intermediates_only: bool = False,
    ) -> Any:
        """Maps (B, C_i, H_i, W_i) of stages: ``indices`` lists their numbers, or counts
        the last ones; by default all.

        Only the last stage has a norm, which is always applied; ``norm`` and
        ``stop_early`` change nothing. Without ``intermediates_only``, the output of
        :meth:`forward_features` comes first.

        Raises:
            ValueError: If ``output_fmt`` is not 'NCHW'.
        """
        if output_fmt != 'NCHW':
            raise ValueError(f"output_fmt must be 'NCHW', got {output_fmt!r}")
        taken, _ = feature_take_indices(len(self.feature_info), indices)
        tokens = self.backbone(x)
        maps = [self.to_map(tokens[i], x, i) for i in taken]
        return maps if intermediates_only else (self.read_last(tokens[-1], x), maps)

    def prune_intermediate_layers(
        self, indices: Indices = 1, prune_norm: bool = False, prune_head: bool = True
    ) -> list[int]:
        """Remove the layers that these stages do not need; return their numbers."""
        num_stages = len(self.feature_info)
        taken, last = feature_take_indices(num_stages, indices)
        if last + 1 < num_stages:
            del self.backbone.get_submodule(self.stages)[last + 1 :]
            setattr(self.backbone, f'norm{num_stages - 1}', None)
            self.backbone.out_indices = tuple(range(last + 1))
            self.has_token = False
        if prune_head:
            self.reset_classifier(0, '')
            self.neck = self.backbone.class_layers = None
        return taken

    def get_classifier(self) -> nn.Module:
        return self.head.fc

    def reset_classifier(
        self, num_classes: int, global_pool: Optional[str] = None
    ) -> None:
        """Replace the last layer, and the pooling if it is given."""
        kinds = ('token', 'avg', '') if self.has_token else ('avg', '')
        if global_pool not in (None, *kinds):
            raise ValueError(f'global_pool must be one of {kinds}, got {global_pool!r}')
        if global_pool is not None:
            self.global_pool = global_pool
        self.num_classes = num_classes
        self.head.fc = nn.Identity()
        if num_classes:
            self.head.fc = nn.Linear(self.head_hidden_size, num_classes)
            nn.init.trunc_normal_(self.head.fc.weight, std=0.02)
            nn.init.zeros_(self.head.fc.bias)

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute blocks in the backward pass, to save memory."""
        self.backbone.with_cp = enable

    def no_weight_decay(self) -> set[str]:
        """Names of parameters without weight decay, besides vectors."""
        return {name for name, _ in self.named_parameters() if NO_DECAY.search(name)}

    def group_matcher(self, coarse: bool = False) -> Callable[[str], int]:
        """A function from a parameter's name to its layer, or to its stage."""

        def stage_of(name: str) -> int:
            inside = name.startswith(PREFIX)
            return self.backbone.stage_of(name[len(PREFIX) :] if inside else '')

        def layer_of(name: str) -> int:
            return self.backbone.get_layer_depth(name, PREFIX)[0]

        return stage_of if coarse else layer_of

    def load_pretrained(self, address: str) -> None:
        """Load a classifier: official weights, MMPretrain's, or our own, from an
        address of :func:`mmlinattn.weights.load_pretrained`.

        The first convolution is adapted to the image's channels. A last layer for other
        classes keeps its initial values.
        """
        conv = next(x for x in self.backbone.modules() if isinstance(x, nn.Conv2d))
        weight = conv.weight
        shape = (conv.out_channels, 3, *conv.kernel_size)
        conv.weight = nn.Parameter(weight.new_empty(shape))
        parts: dict[str, nn.Module] = {}
        if self.neck is not None:
            parts['neck'] = self.neck
        if self.num_classes == self.pretrained_cfg['num_classes']:
            parts['head'] = self.head
        load_pretrained(self.backbone, address, parts=parts)
        weight.data.copy_(adapt_input_conv(conv.in_channels, conv.weight.detach()))
        conv.weight = weight


def register(name: str) -> None:
    """Make timm build a model of ours by its name, unless it knows the name."""
    if is_model(name):  # imported again; or timm's own by now, which stays
        return
    backbone = backbone_of(name)

    def create(pretrained: bool = False, **kwargs: Any) -> nn.Module:
        feature_cfg = dict(out_indices=4, feature_cls='getter')
        kwargs = dict(backbone=backbone, feature_cfg=feature_cfg, **kwargs)
        return build_model_with_cfg(TimmModel, name, pretrained, **kwargs)

    create.__name__ = create.__qualname__ = name
    register_model(create)


def describe(name: str, weights: Optional[str]) -> dict[str, Any]:
    """timm's entry of a model: address of its weights, preparation of images."""
    family = name.partition('_')[0]
    _, first_conv, has_token = FAMILIES[family]
    stride = 16 if family == 'vittt' else 32
    side, crop_pct = (384, 1.0) if name.endswith('_384') else (224, 0.9)
    crop_pct = crop_pct if CROPPED_LESS.match(name) else 0.875
    return dict(
        file=weights,  # as a url, timm would download it itself
        custom_load=True,
        input_size=(3, side, side),
        pool_size=None if has_token else (side // stride, side // stride),
        crop_pct=crop_pct,
        first_conv=PREFIX + first_conv,
        classifier='head.fc',
    )


def weights_of(config: str) -> Optional[str]:
    """The address of a model's public weights, trained from scratch or fine-tuned."""
    names = config, config.replace('_in1k', '_finetune_in1k')
    return next((_addresses[name] for name in names if name in _addresses), None)


_addresses = hub.read_addresses(hub.find_folder())
default_cfgs = generate_default_cfgs(
    {name: describe(name, weights_of(config)) for name, (config, _) in MODELS.items()}
)
for _name in MODELS:
    register(_name)
