"""Areas that polygons share, beside what geometry says of them."""

import math
import resource

import mmcv.ops
import pytest
import torch
from loading import load_module

from mmlinattn.ops import geometry, polygons, rotated

fixture = load_module('tests/data/mmcv/ops_fixture.py')


def iou(first, second, name='rotated', **options):
    """Overlaps (B, L), or (B,) if aligned."""
    aligned = options.get('aligned', False)
    output = torch.zeros(len(first) if aligned else len(first) * len(second))
    function = getattr(rotated, f'box_iou_{name}')
    function(first, second, output, mode_flag=0, aligned=aligned)
    return output if aligned else output.view(len(first), len(second))


def test_a_turn_and_a_shift_change_nothing():
    first, second = fixture.rotated_boxes(30), fixture.rotated_boxes(20, seed=7)
    expected = iou(first, second)
    assert 0.05 < (expected > 0).float().mean() < 0.95
    angle, rows = 0.7, []
    for boxes in (first, second):
        x, y = boxes[:, 0], boxes[:, 1]
        turned = boxes.clone()
        turned[:, 0] = x * math.cos(angle) - y * math.sin(angle) + 300
        turned[:, 1] = x * math.sin(angle) + y * math.cos(angle) - 50
        turned[:, 4] += angle
        rows.append(turned)
    torch.testing.assert_close(iou(*rows), expected, rtol=0, atol=2e-4)


def test_upright_boxes_as_without_angles():
    corners = fixture.boxes(25)
    low, high = corners[:, :2], corners[:, 2:]
    boxes = torch.cat([(low + high) / 2, high - low, torch.zeros(25, 1)], 1)
    expected = mmcv.ops.nms(corners, fixture.uniform(25), 0.3)[1]
    assert torch.equal(
        mmcv.ops.nms_rotated(boxes, fixture.uniform(25), 0.3)[1], expected
    )


@pytest.mark.parametrize('size', [1e-3, 1.0, 1e4])
@pytest.mark.parametrize('angle', [0.0, 1e-9, 1e-5, 0.3, math.pi / 2, 3.0])
def test_equal_boxes_overlap_wholly(size, angle):
    """In whatever way they are written, at any place."""
    boxes = torch.tensor([[700.0, -3.0, 4 * size, size, angle]], dtype=torch.float64)
    others = boxes[:, [0, 1, 3, 2, 4]] + torch.tensor([0, 0, 0, 0, math.pi / 2])
    for other in (boxes, others, boxes + torch.tensor([0, 0, 0, 0, math.pi])):
        assert iou(boxes, other).item() == pytest.approx(1, abs=1e-6)


def test_concave_quadrilaterals():
    """An arrow of area 6 in a square of area 16, and beside the notch."""
    arrow = torch.tensor([[0.0, 0, 2, 3, 4, 0, 2, 4]])
    square = torch.tensor([[0.0, 0, 4, 0, 4, 4, 0, 4]])
    notch = torch.tensor([[1.5, 0.0, 2.5, 0, 2.5, 1, 1.5, 1]])
    area = geometry.signed_area(arrow.double().view(4, 2)).abs().item()
    for first, second in ((arrow, square), (square, arrow), (arrow.flip(1), square)):
        assert iou(first, second, 'quadri').item() == pytest.approx(area / 16)
    assert iou(arrow, notch, 'quadri').item() == pytest.approx(0, abs=1e-12)


def test_gradient_of_the_generalized_overlap():
    points = fixture.point_sets(6).double()
    boxes = fixture.rotated_corners(fixture.rotated_boxes(6, seed=3)).double()

    def giou(sets):
        output = sets.new_zeros(len(sets), 19)
        polygons.convex_giou(sets, boxes, output)
        return output

    gradient = giou(points)[:, :-1]
    for column in range(18):
        step = torch.zeros(18, dtype=torch.float64)
        step[column] = 1e-6
        slope = (giou(points + step)[:, -1] - giou(points - step)[:, -1]) / 2e-6
        torch.testing.assert_close(gradient[:, column], slope, rtol=0, atol=1e-6)


def test_labels_compete_among_themselves():
    boxes, scores = fixture.rotated_boxes(60), fixture.uniform(60, seed=3)
    labels = torch.arange(60) % 3
    index = mmcv.ops.nms_rotated(boxes, scores, 0.1, labels)[1]
    expected = [
        some[mmcv.ops.nms_rotated(boxes[some], scores[some], 0.1)[1]]
        for some in ((labels == label).nonzero()[:, 0] for label in range(3))
    ]
    assert sorted(index.tolist()) == sorted(torch.cat(expected).tolist())
    assert scores[index].diff().max() <= 0


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    boxes = fixture.rotated_boxes(20).to(dtype)
    output = mmcv.ops.box_iou_rotated(boxes, boxes)
    expected = mmcv.ops.box_iou_rotated(boxes.float(), boxes.float())
    assert output.dtype == dtype
    torch.testing.assert_close(output, expected.to(dtype))


def test_memory_of_all_anchors():
    """21,824 anchors and 500 boxes in less than 1 GiB."""
    anchors, boxes = fixture.rotated_boxes(21824), fixture.rotated_boxes(500, seed=7)
    anchors[:, :2] *= 20
    boxes[:, :2] *= 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    overlaps = mmcv.ops.box_iou_rotated(anchors, boxes)
    assert overlaps.shape == (21824, 500) and (overlaps > 0).any(0).all()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20
