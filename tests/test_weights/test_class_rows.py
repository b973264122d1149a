"""Rows of last layers that two models share, for every kind of head."""

import pytest
import torch
from mmengine.registry import MODELS
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmlinattn.weights import class_rows
from mmlinattn.weights.class_names import match_classes

THEIRS = ('person', 'traffic light', 'bus', 'knife', 'Fox, red fox')
OURS = ('cell', 'Traffic_Lights', 'people', 'red fox')
SHARED = {1: 1, 2: 0, 3: 4}  # ours: theirs


@pytest.mark.parametrize(
    'ours, theirs, expected',
    [
        (OURS, THEIRS, SHARED),
        (['Car', 'cars', 'BUSES', 'dogs'], ['dog', 'car', 'bus'], [1, 1, 2, 0]),
        (['knives', 'bench', 'cherry'], ['cherries', 'benches', 'knife'], [2, 1, 0]),
        (['potted plant', 'glass'], ['potted-plant', 'glas', 'plant'], [0, None]),
        (['boss', 'a', ''], ['bos', 'as', 'b'], [None, None, None]),
        (['box', 'leaf'], ['leaves', 'boxes', 'box'], [2, 0]),
        (['bed'], ['bed ', 'beds'], [0]),
    ],
)
def test_names(ours, theirs, expected):
    """Case, signs and plurals do not matter, and the same name comes first."""
    if not isinstance(expected, dict):
        expected = {i: j for i, j in enumerate(expected) if j is not None}
    assert match_classes(ours, theirs) == expected


CONVS = dict(norm_cfg=None, conv_cfg=None)
ANCHORS = dict(
    type='AnchorGenerator',
    octave_base_scale=4,
    scales_per_octave=3,
    ratios=[0.5, 2.0],
    strides=[8],
)
SOFTMAX = dict(type='CrossEntropyLoss', use_sigmoid=False)
IMAGE = (1, 8, 5, 6)
# configs of heads, what they take, and outputs of classes: (B, groups, classes, ...)
HEADS = {
    'anchors': (
        dict(type='mmdet.RetinaHead', in_channels=8, feat_channels=8, stacked_convs=1),
        lambda head, x: head([x])[0][0].unflatten(1, (6, -1)),
    ),
    'anchors, softmax': (
        dict(
            type='mmdet.RetinaHead',
            in_channels=8,
            feat_channels=8,
            stacked_convs=1,
            loss_cls=SOFTMAX,
        ),
        lambda head, x: head([x])[0][0].unflatten(1, (6, -1)),
    ),
    'no anchors': (
        dict(
            type='mmdet.FCOSHead',
            in_channels=8,
            feat_channels=8,
            stacked_convs=1,
            norm_cfg=None,
            strides=[8],
        ),
        lambda head, x: head([x])[0][0][:, None],
    ),
    'regions': (
        dict(
            type='mmdet.Shared2FCBBoxHead',
            in_channels=8,
            fc_out_channels=16,
            roi_feat_size=(5, 6),
        ),
        lambda head, x: head(x)[0][:, None],
    ),
    'boxes of regions': (
        dict(
            type='mmdet.Shared2FCBBoxHead',
            in_channels=8,
            fc_out_channels=16,
            roi_feat_size=(5, 6),
        ),
        lambda head, x: head(x)[1].unflatten(1, (-1, 4)).transpose(1, 2),
    ),
    'masks': (
        dict(type='mmdet.FCNMaskHead', num_convs=1, in_channels=8, conv_out_channels=8),
        lambda head, x: head(x)[:, None],
    ),
    'areas': (
        dict(type='mmseg.FCNHead', in_channels=8, channels=8, in_index=0),
        lambda head, x: head([x])[:, None],
    ),
    "EfficientViT's areas": (
        dict(
            type='mmlinattn.EfficientViTHead', in_channels=[8], channels=8, in_index=[0]
        ),
        lambda head, x: head([x])[:, None],
    ),
    'photos': (
        dict(type='mmpretrain.LinearClsHead', in_channels=8),
        lambda head, x: head((x.mean((2, 3)),))[:, None],
    ),
}
WITH_BACKGROUND = ('anchors, softmax', 'regions')


def model_of(kind, num_classes):
    """A model with a head of whole numbers, whose sums are exact in any order."""
    cfg = dict(HEADS[kind][0], num_classes=num_classes)
    if kind.startswith('anchors'):
        cfg.update(anchor_generator=ANCHORS)
    if 'areas' in kind:
        cfg.update(norm_cfg=dict(type='BN'))
    model = nn.Module()
    model.head = MODELS.build(cfg)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, _BatchNorm):
                setattr(parent, name, nn.Identity())
            if isinstance(child, (nn.Hardswish, nn.Dropout2d)):
                setattr(parent, name, nn.ReLU())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-1, 2, parameter.shape))
    return model.double().eval()


def outputs(kind, model, x):
    with torch.no_grad():
        return HEADS[kind][1](model.head, x)


@pytest.mark.parametrize('kind', HEADS)
@pytest.mark.parametrize('theirs', [THEIRS, THEIRS[1:]], ids=['other', 'same number'])
def test_outputs_of_shared_classes_are_equal(kind, theirs):
    """Also where both have as many classes, so that shapes tell nothing."""
    torch.manual_seed(0)
    there, here = model_of(kind, len(theirs)), model_of(kind, len(OURS))
    before = {key: x.clone() for key, x in here.state_dict().items()}
    checkpoint = dict(state_dict=there.state_dict())
    rows = class_rows.take_rows(here, checkpoint, OURS, theirs)
    assert all(x.equal(before[key]) for key, x in here.state_dict().items())
    shared = match_classes(OURS, theirs)
    assert rows.classes == shared and len(shared) == 3 - (theirs != THEIRS)
    trunk = {k: x for k, x in checkpoint['state_dict'].items() if k in before}
    here.load_state_dict(trunk)
    x = torch.randint(-3, 4, IMAGE).double()
    expected, ours = outputs(kind, there, x), outputs(kind, here, x)
    for i, j in shared.items():
        assert ours[:, :, i].equal(expected[:, :, j]) and ours[:, :, i].any()
    if kind in WITH_BACKGROUND:
        assert ours[:, :, len(OURS)].equal(expected[:, :, len(theirs)])
    # rows of other classes are the model's own
    here.load_state_dict({**trunk, **{key: before[key] for key in rows.entries}})
    own = outputs(kind, here, x)
    for i in set(range(len(OURS))) - {*shared}:
        assert ours[:, :, i].equal(own[:, :, i])


@pytest.mark.parametrize('kind', ['anchors', 'regions', 'areas', 'photos'])
def test_nothing_to_carry(kind):
    """The same classes stay; others start anew, also where shapes are the same."""
    torch.manual_seed(0)
    there, here = model_of(kind, 3), model_of(kind, 3)
    names, own = ['a', 'b', 'c'], here.state_dict()
    checkpoint = dict(state_dict=there.state_dict())
    rows = class_rows.take_rows(here, checkpoint, names, names)
    assert not rows.entries
    rows = class_rows.take_rows(here, checkpoint, ['x', 'y', 'z'], names)
    assert rows.entries and not rows.classes
    for key, entry in checkpoint['state_dict'].items():
        assert entry.equal(own[key]) == (key in rows.entries)
    rows = class_rows.take_rows(here, checkpoint, ['x', 'y', 'z'], ['a', 'b'])
    assert not rows.entries


def test_the_layer_of_all_classes_together_stays():
    """A region is an object or none, whatever its class is."""
    model = nn.Module()
    model.rpn_head = MODELS.build(
        dict(type='mmdet.RPNHead', in_channels=8, feat_channels=8)
    )
    weights = {key: x + 1 for key, x in model.state_dict().items()}
    assert not class_rows.carry_rows(model, weights, ['a'], ['b']).entries


def test_trained_further_with_more_classes():
    """Two more: rows of the others are those of the checkpoint."""
    torch.manual_seed(0)
    there, here = model_of('regions', 2), model_of('regions', 4)
    checkpoint = dict(state_dict=there.state_dict())
    rows = class_rows.take_rows(here, checkpoint, ['x', 'b', 'y', 'a'], ['a', 'b'])
    assert rows.classes == {1: 1, 3: 0} and len(rows.entries) == 4
    here.load_state_dict(checkpoint['state_dict'])


def test_names_of_wrappers():
    there, here = model_of('areas', 2), model_of('areas', 3)
    entries = {f'module.{key}': x for key, x in there.state_dict().items()}
    checkpoint = dict(state_dict=entries)
    class_rows.take_rows(here, checkpoint, ['a', 'b', 'c'], ['c', 'a'])
    here.load_state_dict(checkpoint['state_dict'])
    last = there.head.conv_seg.weight
    assert here.head.conv_seg.weight[[2, 0]].equal(last)
