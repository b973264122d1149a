"""Our classifiers and backbones in timm, by name, once this module is imported.

A name consists of the class, the size, the attention or scaling, and the image's side
if that is not 224.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Optional, Union

import torch
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
from .functional import to_map, to_tokens
from .functional.tracing import ceil_div
from .parts import build_model
from .public_weights import read_models
from .timm_names import FAMILIES, MODELS, family_of
from .utils.log import quiet
from .weights import load_pretrained

# of parameters with axes; vectors have no weight decay in timm
NO_DECAY = re.compile(
    'pos_embed|cls_token|relative_position_bias_table|agent_bias|query_bias|focus_scale'
)
# the crops of CSWin's recipe, 0.9 and the whole
CROPPED_LESS = re.compile('c?swin_(tiny|base)_(?!inline|polaformer)')
# (class, size) of a classifier whose neck is wider than those of its family
WIDER_NECKS = {('MAViT', 'large'): 2560}
PREFIX = 'backbone.'
Indices = Union[int, list[int]]


def backbone_of(name: str) -> dict[str, Any]:
    """Return the config of the backbone of a model."""
    family = FAMILIES[name.partition('_')[0]]
    return {'type': family.kind, **MODELS[name][1]}


def add_options(
    options: dict[str, Any], kind: str, img_size: Union[int, tuple[int, int], None]
) -> None:
    """Add to a user's options what a backbone of this class needs in a classifier of
    timm."""
    family = family_of(kind)
    if img_size is not None and family.has_tables:
        side = img_size if isinstance(img_size, int) else max(img_size)
        options.update(img_size=side)
    # nobody pads these batches, and black may be zero
    options.setdefault('mask_padding', False)
    if family.has_neck:
        options.update(out_norm=None)
    if kind == 'SwinTransformer':  # these are classifiers
        options.setdefault('pad_small_map', False)


def build_neck(
    backbone: dict[str, Any], num_features: int
) -> Optional[models.ConvPoolingNeck]:
    """Return the neck of a classifier whose last norm is a BatchNorm; None for
    others."""
    family = family_of(backbone['type'])
    if not family.has_neck:
        return None
    model = (family.kind, str(backbone.get('arch')))
    channels = WIDER_NECKS.get(model, family.neck_channels)
    return models.ConvPoolingNeck(num_features, channels)


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
        dynamic_img_size: Whether a ViT of timm takes images of any size; here, all
            models do.
        device: Where parameters and buffers are made; by default PyTorch's.
        dtype: Type of the floating-point ones. Values are drawn in the default type.
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
        dynamic_img_size: bool = True,
        device: Any = None,
        dtype: Optional[torch.dtype] = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if output_stride != 32:
            raise ValueError(
                f'output_stride={output_stride} is not possible: there are no dilated '
                'maps; the strides are in feature_info'
            )
        options.update(in_channels=in_chans, out_type='raw')
        add_options(options, backbone['type'], img_size)
        place = nullcontext() if device is None else torch.device(device)
        with place:
            self.backbone = model = build_model({**backbone, **options})
        # other frameworks try models out on memory that nobody has filled
        model.refuses_nan = False
        # only the last stage's map has a norm, as in a classifier
        model.out_indices = tuple(range(model.num_stages))
        self.stages = 'stages' if hasattr(model, 'stages') else 'blocks'
        self.feature_info = [
            dict(num_chs=dims, reduction=stride, module=f'{PREFIX}{self.stages}.{i}')
            for i, (dims, stride) in enumerate(
                zip(model.feature_channels, model.feature_strides)
            )
        ]
        stride = model.feature_strides[0]
        self.patch_embed.patch_size = (stride, stride)
        self.num_features = self.head_hidden_size = model.feature_channels[-1]
        with place:
            self.neck = build_neck(backbone, self.num_features)
        if self.neck is not None:
            self.head_hidden_size = self.neck.out_channels
        names = [name for name, _ in model.named_parameters()]
        self.has_token = any(name.endswith('cls_token') for name in names)
        self.global_pool = 'token' if self.has_token else 'avg'
        self.drop_rate = drop_rate
        self.head = nn.ModuleDict()
        self.reset_classifier(num_classes, global_pool)
        if not next(model.parameters()).is_meta:
            with quiet():  # MMEngine, if it is loaded, logs every parameter
                for part in filter(None, (model, self.neck)):
                    part.init_weights()
        if dtype is not None:
            self.to(dtype)

    @property
    def patch_embed(self) -> Any:
        """The first embedding; its ``patch_size`` is the stride of the first map."""
        model: Any = self.backbone
        plain = self.stages == 'blocks'
        return model.patch_embed if plain else model.stages[0].embedding

    @property
    def num_prefix_tokens(self) -> int:
        """Class tokens before those of the last map."""
        return int(self.has_token)

    def forward_features(self, x: Tensor) -> Tensor:
        """Return the last map (B, C, H', W') of images (B, in_chans, H, W), or, with a
        class token, tokens (B, 1 + N, C)."""
        return self.read_last(self.backbone(x)[-1], x)

    def read_last(self, tokens: Tensor, x: Tensor) -> Tensor:
        """Return tokens of the last stage, as :meth:`forward_features` returns them."""
        return tokens if self.has_token else self.to_map(tokens, x, -1)

    def to_map(self, tokens: Tensor, x: Tensor, stage: int) -> Tensor:
        """Return tokens of a stage, of images x, without the class token as a map."""
        stride = self.backbone.feature_strides[stage]
        height, width = [ceil_div(side, stride) for side in x.shape[2:]]
        tokens = tokens[:, tokens.size(1) - height * width :]
        return to_map(tokens, (height, width)).contiguous()

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Return the output of :meth:`forward_features` to logits (B, num_classes) or,
        with ``pre_logits``, to the last layer's input."""
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
        return_prefix_tokens: bool = False,
    ) -> Any:
        """Return maps (B, C_i, H_i, W_i) of stages: ``indices`` lists their numbers, or
        counts the last ones; by default all. With ``output_fmt='NLC'``, their tokens
        (B, H_i * W_i, C_i). With ``return_prefix_tokens``, each comes in a pair with
        the class token of its stage, (B, 1, C_i) or (B, 0, C_i).

        Only the last stage has a norm, which is always applied; ``norm`` and
        ``stop_early`` change nothing. Without ``intermediates_only``, the output of
        :meth:`forward_features` comes first.

        Raises:
            ValueError: If ``output_fmt`` is neither.
        """
        if output_fmt not in ('NCHW', 'NLC'):
            raise ValueError(f"output_fmt must be 'NCHW' or 'NLC', got {output_fmt!r}")
        stages, _ = feature_take_indices(len(self.feature_info), indices)
        tokens = self.backbone(x)
        maps = [self.to_map(tokens[i], x, i) for i in stages]
        outs: list[Any] = maps
        if output_fmt == 'NLC':
            outs = [to_tokens(out) for out in maps]
        if return_prefix_tokens:
            counts = [math.prod(out.shape[2:]) for out in maps]
            extra = [tokens[i][:, :-count] for i, count in zip(stages, counts)]
            outs = list(zip(outs, extra))
        return outs if intermediates_only else (self.read_last(tokens[-1], x), outs)

    def prune_intermediate_layers(
        self, indices: Indices = 1, prune_norm: bool = False, prune_head: bool = True
    ) -> list[int]:
        """Remove the layers that these stages do not need; return their numbers."""
        num_stages = len(self.feature_info)
        stages, last = feature_take_indices(num_stages, indices)
        if last + 1 < num_stages:
            del self.backbone.get_submodule(self.stages)[last + 1 :]
            setattr(self.backbone, f'norm{num_stages - 1}', None)
            self.backbone.out_indices = tuple(range(last + 1))
            self.has_token = False
        if prune_head:
            self.reset_classifier(0, '')
            self.neck = self.backbone.class_layers = None
        return stages

    def get_classifier(self) -> nn.Module:
        return self.head.fc

    def reset_classifier(
        self, num_classes: int, global_pool: Optional[str] = None
    ) -> None:
        """Replace the last layer, and the pooling if it is given. The new layer has the
        dtype and the device of the backbone."""
        kinds = ('token', 'avg', '') if self.has_token else ('avg', '')
        if global_pool not in (None, *kinds):
            raise ValueError(f'global_pool must be one of {kinds}, got {global_pool!r}')
        if global_pool is not None:
            self.global_pool = global_pool
        self.num_classes = num_classes
        self.head.fc = nn.Identity()
        if num_classes:
            like = next(self.backbone.parameters())
            fc = nn.Linear(self.head_hidden_size, num_classes, device=like.device)
            nn.init.trunc_normal_(fc.weight, std=0.02)
            nn.init.zeros_(fc.bias)
            self.head.fc = fc.to(like.dtype)  # CPUs draw no normal float16

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Recompute blocks in the backward pass, to save memory."""
        self.backbone.with_cp = enable

    def no_weight_decay(self) -> set[str]:
        """Return names of parameters without weight decay, besides vectors."""
        return {name for name, _ in self.named_parameters() if NO_DECAY.search(name)}

    def group_matcher(self, coarse: bool = False) -> Callable[[str], int]:
        """Return a function from a parameter's name to its layer, or to its stage."""

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
        conv = next(
            module
            for module in self.backbone.modules()
            if isinstance(module, nn.Conv2d)
        )
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
    family = FAMILIES[name.partition('_')[0]]
    side, crop_pct = (384, 1.0) if name.endswith('_384') else (224, 0.9)
    map_side = side // family.stride
    crop_pct = crop_pct if CROPPED_LESS.match(name) else 0.875
    return dict(
        file=weights,  # as a url, timm would download it itself
        custom_load=True,
        input_size=(3, side, side),
        pool_size=None if family.has_token else (map_side, map_side),
        crop_pct=crop_pct,
        first_conv=PREFIX + family.first_conv,
        classifier='head.fc',
    )


def weights_of(config: str) -> Optional[str]:
    """Return the address of a model's public weights, trained from scratch or
    fine-tuned."""
    names = config, config.replace('_in1k', '_finetune_in1k')
    return next((_addresses[name] for name in names if name in _addresses), None)


_addresses = {x.name: x.address for x in read_models(hub.find_folder())}
default_cfgs = generate_default_cfgs(
    {name: describe(name, weights_of(config)) for name, (config, _) in MODELS.items()}
)
for _name in MODELS:
    register(_name)
