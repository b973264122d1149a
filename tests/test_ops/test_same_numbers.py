"""Our operators beside the recorded ones of a compiled mmcv, called by mmcv.ops."""

import pkgutil
import sys

import mmcv.ops
import pytest
import torch
from loading import load_module

from mmlinattn import ops

fixture = load_module('tests/data/mmcv/ops_fixture.py')


class Ours:
    """Stands in for ``mmcv._ext``, also where that is compiled."""

    def __getattr__(self, name):
        return ops.find(name)


@pytest.fixture(autouse=True)
def our_operators(monkeypatch):
    for module in pkgutil.iter_modules(mmcv.ops.__path__, 'mmcv.ops.'):
        loaded = sys.modules.get(module.name)
        if hasattr(loaded, 'ext_module'):
            monkeypatch.setattr(loaded, 'ext_module', Ours())


# mmcv computes areas in float32, ours in float64; sums of six values are rounded
ROUNDED = (
    'box_iou_rotated',
    'box_iou_quadri',
    'convex_iou',
    'convex_giou',
    'min_area_polygons',
    'diff_iou_rotated_2d',
    'rotated_feature_align',
)


def assert_same(outputs, expected, tolerance=1e-6):
    """To a tolerance, or of the largest entry if that is more; indices exactly."""
    assert len(outputs) == len(expected) > 0
    for output, right in zip(outputs, expected):
        output = torch.as_tensor(output)
        most = right.abs().max().item() if right.numel() else 0.0
        atol = tolerance * max(1.0, most) if right.is_floating_point() else 0
        torch.testing.assert_close(output, right, rtol=0, atol=atol, equal_nan=True)


@pytest.mark.parametrize('name', fixture.CASES)
def test_as_compiled(name):
    tolerance = 1e-5 if name.partition('-')[0] in ROUNDED else 1e-6
    assert_same(fixture.CASES[name](mmcv.ops), fixture.outputs(name), tolerance)


def maps_like(dtype):
    """Operators that models call on features, each with its inputs in a dtype."""
    maps, boxes = fixture.MAPS.to(dtype), fixture.regions()
    offset = fixture.shifts(1, 1, 1, 2).to(dtype)
    mask, weight = offset[:, :9].sigmoid(), fixture.noise(6, 4, 3, 3) / 6
    small = fixture.noise(2, 4, 7, 6).to(dtype)
    one = fixture.noise(1, 4, 2, 3).to(dtype)
    masks = fixture.noise(1, 9, 4, 6).softmax(1).to(dtype)
    return dict(
        roi_align=(maps, boxes, (3, 2), 0.5),
        deform_roi_pool=(maps, boxes, None, (3, 2), 0.5),
        deform_conv2d=(small, offset, weight.to(dtype), 1, 1),
        modulated_deform_conv2d=(small, offset, mask, weight.to(dtype), None, 1, 1),
        carafe=(one, masks, 3, 1, 2),
        sigmoid_focal_loss=(fixture.noise(9, 3).to(dtype), torch.arange(9) % 4),
        roi_align_rotated=(maps, fixture.rotated_regions().to(dtype), (3, 2), 0.5, 2),
    )


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
@pytest.mark.parametrize('name', maps_like(torch.float32))
def test_half_precision_is_rounded_once(name, dtype):
    """As float32 of the same values, under autocast too."""
    function = getattr(mmcv.ops, name)
    with torch.autocast('cpu', torch.bfloat16):
        half = list(maps_like(dtype)[name])
        half[0].requires_grad_()
        output = function(*half)
    output.sum().backward()
    full = [
        x.detach().float()
        if isinstance(x, torch.Tensor) and x.is_floating_point()
        else x
        for x in maps_like(dtype)[name]
    ]
    full[0].requires_grad_()
    expected = function(*full)
    expected.sum().backward()
    assert output.dtype == half[0].grad.dtype == dtype
    for x, y in ((output, expected), (half[0].grad, full[0].grad)):
        torch.testing.assert_close(x.float(), y.to(dtype).float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_boxes_in_half_precision(dtype):
    boxes, scores = (x.to(dtype) for x in fixture.scored()['many'])
    indices = mmcv.ops.nms(boxes, scores, 0.3)[1]
    torch.testing.assert_close(
        indices, mmcv.ops.nms(boxes.float(), scores.float(), 0.3)[1]
    )


def test_missing_operator_is_one_line():
    boxes = torch.rand(2, 7)
    with pytest.raises(NotImplementedError) as error:
        mmcv.ops.boxes_overlap_bev(boxes, boxes)
    text = str(error.value)
    assert text.startswith('iou3d_boxes_overlap_bev_forward is not among')
    assert '\n' not in text
    assert "mim install 'mmcv" in text


@pytest.mark.parametrize(
    'name',
    [x for x in maps_like(torch.float32) if x not in ('carafe', 'sigmoid_focal_loss')],
)
def test_nan_stays_where_it_is(name):
    """NaN in the first region or offsets neither crashes nor reaches the others."""
    function = getattr(mmcv.ops, name)
    maps, places, *options = maps_like(torch.float32)[name]
    expected = function(maps, places, *options)
    places = places.clone()
    places[0] = torch.nan
    output = function(maps.requires_grad_(), places, *options)
    output.sum().backward()
    assert torch.equal(output[1:], expected[1:])
    assert not maps.grad[1].isnan().any()
