"""Inputs and recorded outputs of mmcv's operators.

``ops_outputs.npz`` has what the cases below return with a compiled mmcv 2.1.0, on a CPU
with torch 2.1.2, recorded by

    python ops_fixture.py

where a C++ compiler is. Operators that mmcv has for GPUs alone run there by the kernels
that it compiles for them, one thread after the other, which ``ops_kernels`` launches.
CARAFE, whose kernel needs threads that work together, is recorded by its naive form.
"""

import importlib
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
CASES = {}
# modules of mmcv.ops whose operators a CPU lacks
KERNELS = {
    'launchers': (
        'carafe',
        'deform_roi_pool',
        'focal_loss',
        'masked_conv',
        'multi_scale_deform_attn',
    ),
    'rotated_launchers': (
        'chamfer_distance',
        'convex_iou',
        'diff_iou_rotated',
        'min_area_polygons',
        'points_in_polygons',
        'riroi_align_rotated',
    ),
}


def case(*options):
    """Registers a function of mmcv.ops's functions as a case, or as one per option."""

    def register(function):
        for option in options or ['']:
            arguments = (
                option if isinstance(option, tuple) else (option,) * (option != '')
            )
            name = '-'.join(map(str, (function.__name__, *arguments)))
            CASES[name] = lambda ops, arguments=arguments: function(ops, *arguments)
        return function

    return register


def noise(*shape, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).standard_normal(shape)).float()


def uniform(*shape, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).random_sample(shape)).float()


def boxes(count, seed=0):
    """Boxes of an image of 40 x 30 pixels, some of which reach out of it."""
    corner, size = uniform(count, 2, seed=seed), uniform(count, 2, seed=seed + 1)
    corner = corner * torch.tensor([50.0, 40.0]) - 6
    return torch.cat([corner, corner + size * 20], 1)


def gradients(function, *inputs):
    """The output of a function and the gradients by its inputs."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    output = function(*leaves)
    gradients = torch.autograd.grad(output, leaves, noise(*output.shape, seed=9))
    return [output.detach(), *gradients]


def scored():
    """Boxes by name, with scores that have ties."""
    many = boxes(60)
    ties = (uniform(60, seed=3) * 8).round() / 8
    # neighbors overlap by exactly a third, equal boxes by one
    steps = torch.arange(8.0)[:, None] * torch.tensor([[5.0, 0, 5, 0]])
    steps = torch.cat([steps + torch.tensor([0.0, 0, 10, 10])] * 2)
    return dict(
        many=(many, uniform(60, seed=2)),
        ties=(many, ties),
        steps=(steps, torch.full((16,), 0.5)),
        empty=(many[:0], ties[:0]),
        one=(many[:1], ties[:1]),
    )


@case(*((name, offset) for name in scored() for offset in (0, 1)))
def nms(ops, name, offset):
    threshold = 1 / 3 if name == 'steps' else 0.3
    return ops.nms(*scored()[name], threshold, offset)


@case()
def batched_nms(ops):
    labels = torch.arange(60) % 3
    options = dict(type='nms', iou_threshold=0.2)
    return ops.batched_nms(*scored()['ties'], labels, options)


@case(*((n, m) for n in scored() for m in ('naive', 'linear', 'gaussian')))
def soft_nms(ops, name, method):
    return ops.soft_nms(*scored()[name], 0.3, 0.5, 0.05, method, int(name == 'ties'))


@case(*(name for name in scored() if name != 'empty'))
def nms_match(ops, name):
    rows, scores = scored()[name]
    return ops.nms_match(torch.cat([rows, scores[:, None]], 1), 1 / 3)


def regions():
    """Regions of two images: inside, outside, across the border, of no size."""
    rows = torch.cat([boxes(6), torch.tensor([[90.0, 90, 99, 99], [5.0, 6, 5, 6]])])
    return torch.cat([torch.arange(8.0)[:, None] % 2, rows], 1)


MAPS = noise(2, 3, 15, 19)


@case(*((m, a, r) for m in ('avg', 'max') for a in (True, False) for r in (0, 2)))
def roi_align(ops, mode, aligned, ratio):
    options = (regions(), (3, 2), 0.5, ratio, mode, aligned)
    return gradients(lambda x: ops.roi_align(x, *options), MAPS)


@case('avg', 'max')
def roi_align_of_nothing(ops, mode):
    options = (regions()[:0], 2, 1.0, 0, mode, True)
    return gradients(lambda x: ops.roi_align(x, *options), MAPS)


@case(0, 2)
def deform_roi_pool(ops, ratio):
    def pool(maps, offset):
        return ops.deform_roi_pool(maps, regions(), offset, (3, 2), 0.5, ratio, 0.3)

    return gradients(pool, MAPS, noise(8, 2, 3, 2))


@case()
def deform_roi_pool_without_offset(ops):
    options = (regions(), None, (3, 2), 0.5, 0, 0.1)
    return gradients(lambda x: ops.deform_roi_pool(x, *options), MAPS)


# stride, padding, dilation, groups, groups of offsets
CONVOLUTIONS = ((1, 1, 1, 1, 1), (2, 0, 1, 2, 1), (1, 2, 2, 1, 2))


def shifts(padding, stride, dilation, count):
    """Offsets or weights of a 3 x 3 kernel's points on a map of 7 x 6 pixels."""
    size = [(x + 2 * padding - 2 * dilation - 1) // stride + 1 for x in (7, 6)]
    return noise(2, count * 9, *size, seed=count) * 2


@case(*CONVOLUTIONS)
def deform_conv2d(ops, stride, padding, dilation, groups, offset_groups):
    def convolve(maps, offset, weight):
        options = (stride, padding, dilation, groups, offset_groups)
        return ops.deform_conv2d(maps, offset, weight, *options)

    offset = shifts(padding, stride, dilation, 2 * offset_groups)
    return gradients(
        convolve, noise(2, 4, 7, 6), offset, noise(6, 4 // groups, 3, 3) / 6
    )


@case(*((*x, bias) for x, bias in zip(CONVOLUTIONS, (True, False, True))))
def modulated_deform_conv2d(
    ops, stride, padding, dilation, groups, offset_groups, bias
):
    def convolve(maps, offset, mask, weight, *bias):
        tensors = (maps, offset, mask, weight, *(bias or [None]))
        options = (stride, padding, dilation, groups, offset_groups)
        return ops.modulated_deform_conv2d(*tensors, *options)

    offset = shifts(padding, stride, dilation, 2 * offset_groups)
    mask = shifts(padding, stride, dilation, offset_groups).sigmoid()
    tensors = [noise(2, 4, 7, 6), offset, mask, noise(6, 4 // groups, 3, 3) / 6]
    return gradients(convolve, *tensors, *[noise(6)] * bias)


@case()
def modulated_deform_conv2d_with_larger_offsets(ops):
    """As DyHead calls it: mmcv reads them as if they had the output's size."""

    def convolve(maps, offset, mask, weight):
        return ops.modulated_deform_conv2d(maps, offset, mask, weight, None, 1, 1)

    offset, mask = noise(2, 18, 7, 6), noise(2, 9, 7, 6).sigmoid()
    return gradients(convolve, noise(2, 4, 4, 3), offset, mask, noise(6, 4, 3, 3) / 6)


@case()
def ms_deform_attn(ops):
    attend = importlib.import_module('mmcv.ops.multi_scale_deform_attn')
    attend = attend.MultiScaleDeformableAttnFunction.apply
    shapes, starts = torch.tensor([[5, 7], [3, 2]]), torch.tensor([0, 35])
    points = uniform(2, 6, 2, 2, 4, 2) * 1.4 - 0.2
    weights = noise(2, 6, 2, 2, 4).flatten(3).softmax(3).view(2, 6, 2, 2, 4)
    return gradients(
        lambda value, points, weights: attend(
            value, shapes, starts, points, weights, 64
        ),
        noise(2, 41, 2, 4),
        points,
        weights,
    )


@case(*((g, w) for g in (2.0, 1.5) for w in (False, True)))
def sigmoid_focal_loss(ops, gamma, weighted):
    target = torch.arange(12) % (3 if weighted else 4)
    options = (target, gamma, 0.25, uniform(3, seed=5) if weighted else None, 'none')
    return gradients(lambda x: ops.sigmoid_focal_loss(x, *options), noise(12, 3) * 9)


@case((3, 2, 2), (5, 1, 3))
def carafe(ops, kernel, groups, scale):
    masks = noise(1, groups * kernel**2, 2 * scale, 3 * scale).softmax(1)
    return gradients(
        lambda *x: ops.carafe(*x, kernel, groups, scale), noise(1, 4, 2, 3), masks
    )


@case(0, 1)
def masked_conv2d(ops, padding):
    mask = torch.zeros(1, 15, 19)
    mask[:, 1:13:2, 2:17:3] = 1
    return [ops.masked_conv2d(MAPS[:1], mask, noise(4, 3, 3, 3), noise(4), padding)]


@case((0, 5, 3), (1, 5, 3), (0, 4, 7), (1, 4, 7))
def psa_mask(ops, kind, rows, columns):
    module = importlib.import_module('mmcv.ops.psa_mask')
    return gradients(
        lambda x: module.psa_mask(x, kind, (rows, columns)),
        noise(2, rows * columns, 4, 6),
    )


def rotated_boxes(count, seed=0):
    """Boxes x, y, w, h and angle, of many sizes, most of which overlap some."""
    center, size, angle = (uniform(count, n, seed=seed + n) for n in (2, 3, 1))
    center, size = center * 40, 1 + size[:, :2].square() * 29
    return torch.cat([center, size, (angle - 0.5) * 9], 1)


def special_boxes():
    """Equal boxes, equal ones that are written otherwise, boxes that touch, that lie in
    another, thin ones, and some of no size."""
    rows = [
        *[[10, 10, 8, 4, angle] for angle in (0, 0.3, 0.3, 1.5, 3.2)],
        *([18, 10, 8, 4, 0], [10, 10, 4, 2, 0], [10, 10, 40, 0.25, 0.8]),
        *([10, 10, 0, 4, 0.3], [10, 10, 1e-8, 1e-8, 0]),
    ]
    return torch.tensor(rows)


def rotated_corners(rows):
    """Quadrilaterals (N, 8) of rotated boxes."""
    cos, sin = rows[:, 4:].cos(), rows[:, 4:].sin()
    x = torch.tensor([-0.5, 0.5, 0.5, -0.5]) * rows[:, 2:3]
    y = torch.tensor([-0.5, -0.5, 0.5, 0.5]) * rows[:, 3:4]
    x, y = x * cos - y * sin, x * sin + y * cos
    return torch.stack([x + rows[:, :1], y + rows[:, 1:2]], 2).flatten(1)


@case('iou', 'iof')
def box_iou_rotated(ops, mode):
    first, second = rotated_boxes(40), rotated_boxes(30, seed=7)
    special = special_boxes()
    return [
        ops.box_iou_rotated(first, second, mode),
        ops.box_iou_rotated(first[:30], second, mode, aligned=True, clockwise=False),
        ops.box_iou_rotated(special, special, mode),
        ops.box_iou_rotated(first[:0], second, mode),
    ]


@case('iou', 'iof')
def box_iou_quadri(ops, mode):
    first, second = rotated_boxes(40), rotated_boxes(30, seed=7)
    first, second = rotated_corners(first), rotated_corners(second)
    return [
        ops.box_iou_quadri(first, second, mode),
        ops.box_iou_quadri(first[:30], second, mode, aligned=True),
    ]


@case(0.1, 0.5)
def nms_rotated(ops, threshold):
    rows, scores = rotated_boxes(80), (uniform(80, seed=3) * 16).round() / 16
    labels = torch.arange(80) % 3
    options = dict(type='nms_rotated', iou_threshold=threshold)
    return [
        *ops.nms_rotated(rows, scores, threshold),
        *ops.nms_rotated(rows, scores, threshold, clockwise=False),
        *ops.nms_rotated(rows[:1], scores[:1], threshold),
        *ops.batched_nms(rows, scores, labels, options),
    ]


@case(0.1, 0.5)
def nms_quadri(ops, threshold):
    rows = rotated_corners(rotated_boxes(80))
    return [*ops.nms_quadri(rows, uniform(80, seed=3), threshold)]


def rotated_regions():
    """Regions of two images, one of them out of the map, one of no size."""
    rows = torch.cat([rotated_boxes(6), torch.tensor([[90.0, 90, 9, 9, 1]])])
    rows = torch.cat([rows, torch.tensor([[5.0, 6, 0, 0, 0.5]])])
    return torch.cat([torch.arange(8.0)[:, None] % 2, rows], 1)


@case(*((a, r, c) for a in (True, False) for r in (0, 2) for c in (True, False)))
def roi_align_rotated(ops, aligned, ratio, clockwise):
    options = (rotated_regions(), (3, 2), 0.5, ratio, aligned, clockwise)
    return gradients(lambda x: ops.roi_align_rotated(x, *options), MAPS)


@case((0, False), (2, True))
def riroi_align_rotated(ops, samples, clockwise):
    options = (rotated_regions(), (3, 2), 0.5, samples, 4, clockwise)
    maps = noise(2, 8, 15, 19)
    return gradients(lambda x: ops.riroi_align_rotated(x, *options), maps)


@case(1, 5)
def rotated_feature_align(ops, points):
    rows = rotated_boxes(2 * 15 * 19).view(2, 15, 19, 5)
    # MMRotate gives boxes of all places in one dimension
    rows = rows.view(-1, 5) if points > 1 else rows
    return gradients(lambda x: ops.rotated_feature_align(x, rows, 0.5, points), MAPS)


@case()
def active_rotated_filter(ops):
    places = [uniform(8 * 9, seed=seed).argsort() for seed in range(4)]
    places = torch.stack(places, 1).view(8, 3, 3, 4).int() + 1
    weights = noise(5, 3, 8, 3, 3)
    return gradients(lambda x: ops.active_rotated_filter(x, places), weights)


def point_sets(count):
    """Nine points each, around the corners of rotated boxes."""
    corners = rotated_corners(rotated_boxes(count)).view(-1, 4, 2)
    points = torch.cat([corners, corners.roll(1, 1), corners.mean(1, True)], 1)
    return (points + noise(count, 9, 2, seed=5)).flatten(1)


@case()
def convex_iou(ops):
    return [ops.convex_iou(point_sets(12), rotated_corners(rotated_boxes(9, seed=7)))]


@case()
def convex_giou(ops):
    return [*ops.convex_giou(point_sets(12), rotated_corners(rotated_boxes(12)))]


@case()
def min_area_polygons(ops):
    return [ops.min_area_polygons(point_sets(12))]


@case()
def points_in_polygons(ops):
    grid = torch.stack(torch.meshgrid(*[torch.arange(40.0)] * 2, indexing='ij'), -1)
    square = torch.tensor([[2.0, 2, 9, 2, 9, 7, 2, 7]])
    polygons = torch.cat([rotated_corners(rotated_boxes(9)), square])
    return [ops.points_in_polygons(grid.view(-1, 2), polygons)]


@case()
def chamfer_distance(ops):
    first, second = noise(2, 40, 2), noise(2, 40, 2, seed=4)
    leaves = [first.requires_grad_(), second.requires_grad_()]
    distance, other, *places = ops.chamfer_distance(*leaves)
    grad = torch.autograd.grad([distance, other], leaves, [noise(2, 40)] * 2)
    return [distance.detach(), other.detach(), *places, *grad]


@case()
def diff_iou_rotated_2d(ops):
    first, second = rotated_boxes(60)[None], rotated_boxes(60, seed=7)[None]
    return gradients(lambda *rows: ops.diff_iou_rotated_2d(*rows), first, second)


def outputs(name):
    """Recorded tensors of a case, in order."""
    with np.load(HERE / 'ops_outputs.npz') as recorded:
        keys = [key for key in recorded.files if key.partition('/')[0] == name]
        return [torch.from_numpy(recorded[key]) for key in sorted(keys)]


class Kernels:
    """mmcv's kernels for GPUs, on a CPU, under the names of ``mmcv._ext``."""

    def __init__(self, folder, launchers):
        from torch.utils.cpp_extension import load

        stubs = HERE / 'ops_kernels'
        self.compiled = load(
            launchers,
            [str(stubs / f'{launchers}.cpp')],
            extra_include_paths=[str(stubs), str(folder)],
            extra_cflags=['-O1', '-ffp-contract=off'],
        )

    def __getattr__(self, name):
        return getattr(self.compiled, name)

    def carafe_forward(self, features, masks, kept, _, __, output, **options):
        kept.copy_(features)
        self.compiled.carafe_naive_forward(features, masks, output, **options)

    def carafe_backward(self, *tensors, **options):
        self.compiled.carafe_naive_backward(*tensors[:3], *tensors[-2:], **options)


def main():
    ops = importlib.import_module('mmcv.ops')
    for launchers, modules in KERNELS.items():
        kernels = Kernels(Path(ops.__file__).parent / 'csrc/common/cuda', launchers)
        for name in modules:
            importlib.import_module(f'mmcv.ops.{name}').ext_module = kernels
    recorded = {}
    for name, run in CASES.items():
        for index, tensor in enumerate(run(ops)):
            recorded[f'{name}/{index:02}'] = tensor.numpy()
    np.savez_compressed(HERE / 'ops_outputs.npz', **recorded)


if __name__ == '__main__':
    main()
