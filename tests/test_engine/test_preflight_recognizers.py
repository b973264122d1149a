"""Recognizers of videos, as MMAction2 builds them."""

import pytest
from torch import nn

from mmlinattn.engine.preflight.recognizers import HEADS, check_recognizer
from mmlinattn.models import SwinTransformer

ARCH = dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1])


def recognizer(head, backbone, **parts):
    model = nn.Module()
    model.backbone, model.cls_head = backbone, type(head, (nn.Module,), {})()
    for name, part in parts.items():
        setattr(model, name, part)
    return model


@pytest.mark.parametrize('head', HEADS)
def test_heads_that_take_a_tensor(head):
    ours = SwinTransformer(ARCH, out_indices=(3,))
    with pytest.raises(ValueError, match=rf"{head} takes a tensor.*type='timm.NAME'"):
        check_recognizer(recognizer(head, ours))
    # necks take several maps, and other backbones return a tensor
    check_recognizer(recognizer(head, ours, neck=nn.Identity()))
    check_recognizer(recognizer(head, nn.Identity()))
    check_recognizer(recognizer('MyHead', ours))
    check_recognizer(ours)
