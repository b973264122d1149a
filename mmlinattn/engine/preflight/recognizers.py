"""Compares the maps of our backbones with the heads of MMAction2."""

from typing import Any

from torch import nn

from mmlinattn.models.backbones.base import BaseBackbone

# heads that take one map, as a tensor
HEADS = ('TRNHead', 'TSMHead', 'TSNHead')


def check_recognizer(model: nn.Module) -> None:
    """Raise a ValueError for a recognizer of MMAction2 whose head takes a tensor, where
    our backbones return a tuple of maps."""
    backbone: Any = getattr(model, 'backbone', None)
    head = type(getattr(model, 'cls_head', None)).__name__
    if not isinstance(backbone, BaseBackbone) or head not in HEADS:
        return
    if getattr(model, 'neck', None) is None:
        raise ValueError(
            f'model.cls_head: {head} takes a tensor, and backbones of mmlinattn return '
            "a tuple of maps: write model.backbone = dict(type='timm.NAME'), with a "
            'name of timm such as swin_tiny_elfatt, and custom_imports = dict(imports='
            "['mmlinattn.timm'])"
        )
