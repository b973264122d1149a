"""mmcv's operators: its compiled part beside ours, called by mmcv.ops."""

import importlib
import pkgutil
from functools import partial

import torch
from torch import nn

from .cases import Case, Op, noise
from .models import detection_batch, detector

DETECTORS = {
    'Mask R-CNN, SOFT++-T': 'soft/mask-rcnn_softpp-t_fpn_1x_coco.py',
    'Faster R-CNN, R-50': 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
    'Faster R-CNN, R-50, deformable': (
        'mmdet::dcn/faster-rcnn_r50-dconv-c3-c5_fpn_1x_coco.py'
    ),
    'Deformable DETR, R-50': (
        'mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py'
    ),
}


class Using(nn.Module):
    """A module that runs with one of the two, and its backward pass too.

    Args:
        make (Callable): Makes the module.
        operators (object): What has the operators of ``mmcv._ext``.
    """

    def __init__(self, make, operators):
        super().__init__()
        self.module, self.operators = make(), operators
        self.work = getattr(self.module, 'work', None)  # a detector's
        path = importlib.import_module('mmcv.ops').__path__
        names = [module.name for module in pkgutil.iter_modules(path, 'mmcv.ops.')]
        modules = map(importlib.import_module, names)
        self.callers = [module for module in modules if hasattr(module, 'ext_module')]

    def forward(self, *inputs):
        for caller in self.callers:
            caller.ext_module = self.operators
        return self.module(*inputs)


class Ours:
    """Our operators as attributes, whatever mmcv has."""

    def __getattr__(self, name):
        return importlib.import_module('mmlinattn.ops').find(name)


def variants(make):
    """Return the compiled one, where mmcv has it, and ours."""
    operators = {'mmlinattn.ops': Ours()}
    extension = importlib.import_module('mmcv._ext')
    if not extension.__file__.endswith('.py'):
        operators = {'compiled': extension, **operators}
    return {name: partial(Using, make, some) for name, some in operators.items()}


def operator(name, *args):
    """Return variants of a function of mmcv.ops, with its last arguments."""
    function = getattr(importlib.import_module('mmcv.ops'), name)
    return variants(lambda: Op(lambda *inputs: function(*inputs, *args)))


def boxes(shape):
    """As many boxes as a shape (1, count, ...) says, of an image of 1000 pixels."""
    generator = torch.Generator().manual_seed(0)
    corner, size = torch.rand(2, shape[1], 2, generator=generator)
    return torch.cat([corner * 1000, corner * 1000 + 5 + size * 200], 1)


def suppression(shape, dtype):
    return boxes(shape), noise(shape[1:2]).sigmoid()


def regions(shape, dtype):
    """Return a map and 512 regions of it, 16 where the map is small."""
    count = 512 if shape[-1] > 50 else 16
    rois = torch.cat([torch.zeros(count, 1), boxes((1, count))], 1)
    return noise(shape).requires_grad_(), rois


def shifted(shape, dtype):
    """Return a map, and the offsets and weights of a convolution."""
    batch, channels, *sides = shape
    shapes = shape, (batch, 18, *sides), (channels, channels, 3, 3)
    return [noise(shape).requires_grad_() for shape in shapes]


def mmcv_ops() -> list[Case]:
    """mmcv's operators, and training steps of detectors that call them."""
    nms, align = operator('nms', 0.5), operator('roi_align', 7, 0.25, 0, 'avg', True)
    convolution = operator('deform_conv2d', 1, 1)
    few = dict(small=(1, 100, 4, 1), inputs=suppression, steps=('forward',))
    small, shape = (1, 8, 20, 30), (1, 256, 200, 336)
    cases = [
        Case('NMS of 1,000 boxes', nms, (1, 1000, 4, 1), **few),
        Case('NMS of 10,000 boxes', nms, (1, 10000, 4, 1), **few),
        Case('RoIAlign of 512 regions', align, shape, small, regions),
        Case('deformable convolution', convolution, (1, 256, 50, 84), small, shifted),
    ]
    return cases + [
        Case(
            name,
            variants(detector(config)),
            (1, 3, 800, 1344),
            small=(1, 3, 128, 128),
            inputs=partial(detection_batch, with_mask='mask' in config),
            steps=('forward+backward',),
        )
        for name, config in DETECTORS.items()
    ]
