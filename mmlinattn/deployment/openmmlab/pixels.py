"""Resizing, cropping, normalization and padding of an image, as tensors.

Exported files prepare images themselves. They compute the same integers as OpenCV and
Pillow on 8-bit images, so a file sees the pixels that the model was tested with.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from mmlinattn.parts import type_name

# Options of the steps of a test pipeline; None stands for steps that never change
# images.
_STEPS: dict[str, Any] = {
    'LoadImageFromFile': {'backend_args', 'file_client_args'},
    'Resize': {'scale', 'keep_ratio', 'backend', 'interpolation'},
    'ResizeEdge': {'scale', 'edge', 'backend', 'interpolation'},
    'CenterCrop': {'crop_size'},
    'LoadAnnotations': None,
    'PackInputs': None,
    'PackDetInputs': None,
    'PackSegInputs': None,
}


class Photo(NamedTuple):
    """An image prepared for a network."""

    pixels: Tensor  # (1, C, H', W'), normalized and padded
    size: Tensor  # height and width before padding, (2,), int64
    original: Tensor  # those of the original image

    @property
    def bounds(self) -> Tensor:
        """Largest x, y, x, y of a box, (4,)."""
        return self.size.flip(0).repeat(2).float()

    @property
    def factors(self) -> Tensor:
        """Factors from boxes to those of the original image, (4,)."""
        scales = self.size.double() / self.original.double()
        return (1 / scales).flip(0).repeat(2).float()


class Preparation(nn.Module):
    """A test pipeline and a data preprocessor as one function of an image.

    Args:
        pipeline (Sequence[dict]): Steps, of which ``Resize``, ``ResizeEdge`` and
            ``CenterCrop`` change images.
        preprocessor (dict): With ``mean``, ``std``, ``bgr_to_rgb`` or ``to_rgb``, and
            options of padding.

    Raises:
        ValueError: If a step or an option is unknown.
    """

    def __init__(self, pipeline: Sequence[dict], preprocessor: dict) -> None:
        super().__init__()
        self.steps = []
        for step in pipeline:
            name = type_name(step)
            _check_step(name, step)
            if name in ('Resize', 'ResizeEdge', 'CenterCrop'):
                self.steps.append((name, step))
        is_rgb = preprocessor.get('bgr_to_rgb') or preprocessor.get('to_rgb')
        self.order = [0, 1, 2] if is_rgb else [2, 1, 0]
        for key, neutral in (('mean', 0.0), ('std', 1.0)):
            values = torch.tensor(preprocessor.get(key) or [neutral] * 3)
            self.register_buffer(key, values.float().view(-1, 1, 1))
        padding = preprocessor.get('test_cfg') or {}
        # smaller photos only; size alone is for training
        self.least = padding.get('size')
        divisor = preprocessor.get('pad_size_divisor') or padding.get('size_divisor')
        self.divisor = divisor or 1
        self.value = preprocessor.get('pad_value', preprocessor.get('pad_val', 0))

    def forward(self, image: Tensor) -> Photo:
        """Return an image (H, W, 3), RGB, uint8."""
        image = image.int()
        original = size_of(image)
        for name, step in self.steps:
            if name == 'CenterCrop':
                image = _crop(image, step['crop_size'])
            else:
                image = _METHODS[_method(step)](image, _new_size(image, name, step))
        size = size_of(image)
        pixels = image.permute(2, 0, 1)[self.order].float()
        pixels = ((pixels - self.mean) / self.std)[None]
        if self.least or self.divisor > 1:
            missing = (-size).remainder(self.divisor)
            if self.least:
                missing = (torch.tensor(self.least) - size).clamp(min=0)
            below: Any
            right: Any
            below, right = missing.unbind()
            pixels = nnf.pad(pixels, (0, right, 0, below), value=self.value)
        return Photo(pixels, size, original)


def size_of(image: Tensor) -> Tensor:
    """Return height and width of an image (H, W, 3), as a tensor that a trace
    records."""
    return torch._shape_as_tensor(image)[:2]


def steps(count: Tensor) -> Tensor:
    """0, 1, ... up to a count, as a tensor that a trace records."""
    return torch.arange(count)  # type: ignore[call-overload]


def _check_step(name: str, step: dict) -> None:
    if name not in _STEPS:
        raise ValueError(f'the test pipeline has {name}, which no file can hold')
    known = _STEPS[name]
    unknown = set() if known is None else set(step) - known - {'type', '_scope_'}
    if unknown or step.get('edge', 'short') != 'short' or _method(step) not in _METHODS:
        raise ValueError(f'no file can hold this step of the test pipeline: {step}')


def _method(step: dict) -> tuple[str, str]:
    return step.get('backend') or 'cv2', step.get('interpolation') or 'bilinear'


def _new_size(image: Tensor, name: str, step: dict) -> Tensor:
    """Return height and width after a step, as mmcv and mmpretrain round them."""
    size = size_of(image).double()
    scale: Any = step['scale']
    if name == 'ResizeEdge':
        return (scale * size / size.min()).floor().long()
    width, height = scale if not isinstance(scale, int) else (scale, scale)
    if not step.get('keep_ratio'):
        return torch.tensor([height, width])
    long, short = max(width, height), min(width, height)
    factor = torch.minimum(long / size.max(), short / size.min())
    # OpenCV refuses a side without a pixel
    return (size * factor + 0.5).floor().long().clamp(min=1)


def _crop(image: Tensor, crop: Any) -> Tensor:
    width, height = (crop, crop) if isinstance(crop, int) else crop
    size = size_of(image)
    shape = torch.minimum(size, torch.tensor([height, width]))
    top, left = ((size - shape).double() / 2).round().long().unbind()
    height, width = shape.unbind()
    return image[top : top + height, left : left + width]


def resize_opencv(image: Tensor, size: Tensor) -> Tensor:
    """Bilinear resizing of an image (H, W, 3) of 8 bits, in int32, like OpenCV's.

    OpenCV rounds weights to 11 bits, and drops 4 and then 16 bits of the products.
    """
    old = size_of(image)
    # exporters divide numbers, unlike vectors, in float32
    scales = 1 / (size.double() / old.double())
    taps = (_taps(old[i], size[i], scales[i]) for i in (0, 1))
    (y0, y1, v0, v1), (x0, x1, h0, h1) = taps
    rows = _drop(image[:, x0] * h0[:, None] + image[:, x1] * h1[:, None], 4)
    parts = ((y0, v0), (y1, v1))
    first, second = (_drop(rows[y] * v[:, None, None], 16) for y, v in parts)
    return _drop(first + second + 2, 2)


def _drop(x: Tensor, bits: int) -> Tensor:
    return torch.div(x, 2**bits, rounding_mode='trunc')


def _taps(old: Tensor, new: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
    """Return the two old entries of each new one, and their weights of 2048."""
    places = ((steps(new).double() + 0.5) * scale - 0.5).float()
    low = places.floor()
    part = places - low
    last = (old - 1).float()
    indices = [
        torch.minimum(place.clamp(min=0), last).long() for place in (low, low + 1)
    ]
    weights = [(share * 2048).round().int() for share in (1 - part, part)]
    return (*indices, *weights)


def resize_pillow(
    image: Tensor, size: Tensor, kernel: Callable[[Tensor], Tensor]
) -> Tensor:
    """Resizing of an image (H, W, 3) of 8 bits, in int32, like Pillow's; the kernel
    takes distances to weights.

    Pillow widens the kernel where images shrink, rounds weights to 22 bits, and rounds
    to 8 bits twice: after the width, and after the height. (Pillow 13 begins with the
    height if it shrinks much more than the width.)
    """
    old = size_of(image)
    scales = old.double() / size.double()  # of vectors, as in resize_opencv
    rows, columns = (
        _weights(old[i], size[i], scales[i], kernel, 1 - i) for i in (0, 1)
    )
    planes = _round(image.permute(2, 0, 1).double() @ columns)
    return _round(rows @ planes).permute(1, 2, 0).int()


def _weights(
    old: Tensor,
    new: Tensor,
    scale: Tensor,
    kernel: Callable[[Tensor], Tensor],
    axis: int,
) -> Tensor:
    """Return weights in units of 2^-22, in float64, with the old entries along an axis.

    They need no transposition: ONNX Runtime can't fuse it into a product in float64.
    """
    centers = (steps(new).double() + 0.5) * scale
    places = steps(old).double() + 0.5
    distances = places.unsqueeze(1 - axis) - centers.unsqueeze(axis)
    weights = kernel((distances / scale.clamp(min=1)).abs())
    weights = weights / weights.sum(axis, keepdim=True) * 2**22
    return (weights.abs() + 0.5).floor() * weights.sign()


def _round(sums: Tensor) -> Tensor:
    return ((sums + 2**21) / 2**22).floor().clamp(0, 255)


def _linear(x: Tensor) -> Tensor:
    return (1 - x).clamp(min=0)


def _cubic(x: Tensor) -> Tensor:
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


_METHODS = {
    ('cv2', 'bilinear'): resize_opencv,
    ('pillow', 'bilinear'): lambda image, size: resize_pillow(image, size, _linear),
    ('pillow', 'bicubic'): lambda image, size: resize_pillow(image, size, _cubic),
}
