"""Compares the outputs of our backbones with the heads of classifiers."""

from typing import Any

import torch
from torch import Tensor, nn

# Sides of a map that a head is run on.
SIDE = 3


def check_classifier(model: Any) -> None:
    """Raise a ValueError for a classifier's head that takes other channels than the
    last map of one of our backbones has, or no maps, behind a neck without weights."""
    backbone: Any = model.backbone
    head: Any = getattr(model, 'head', None)
    neck = getattr(model, 'neck', None)
    maps, wanted = backbone.feature_channels, getattr(head, 'in_channels', None)
    kinds = {kind.__name__ for kind in type(head).__mro__}
    if not maps or 'ClsHead' not in kinds:
        return
    pools = neck is None or type(neck).__name__ == 'GlobalAveragePooling'
    if isinstance(wanted, int) and pools and wanted != maps[-1]:
        raise ValueError(
            f'model.head has in_channels={wanted}, but the last map of the backbone '
            f'has {maps[-1]} channels: set model.head.in_channels={maps[-1]}'
        )
    shapes = dict(featmap=(SIDE, SIDE), raw=())
    if neck is not None or backbone.out_type not in shapes:
        return
    shape = shapes[backbone.out_type]
    out = torch.zeros(1, maps[-1], *shape) if shape else torch.zeros(1, SIDE, maps[-1])
    if not takes(head, out):
        kind = 'cls_token' if backbone.with_cls_token else 'avg_featmap'
        raise ValueError(
            f'model.backbone has out_type={backbone.out_type!r}, of which model.head='
            f'{type(head).__name__} makes no scores: set model.backbone.out_type='
            f"{kind!r}, or model.neck=dict(type='GlobalAveragePooling')"
        )


def takes(head: nn.Module, out: Tensor) -> bool:
    """Return whether a head makes one score for each class and image of an output."""
    mode = head.training
    head.eval()  # some of OpenMMLab's modules return nothing
    try:
        with torch.no_grad():
            scores = head((out,))
    except (IndexError, RuntimeError, ValueError):  # of shapes
        return False
    finally:
        head.train(mode)
    return not isinstance(scores, Tensor) or scores.dim() == 2
