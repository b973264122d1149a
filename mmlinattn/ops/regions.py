"""Pooling of regions, which are rows of image index, x1, y1, x2, y2."""

import torch
from torch import Tensor
from torchvision.ops import roi_align

from .common import wide


def roi_align_forward(*tensors: Tensor, pool_mode: int, **options: float) -> None:
    """Fill the output with the average of points of each bin.

    Source: He et al., Mask R-CNN, ICCV 2017, section 3.

    Args:
        tensors: Maps (N, C, H, W); regions (R, 5); the output (R, C, ph, pw); two
            outputs of a maximum, which is not here.
        pool_mode (int): 1, average.
        options: ``aligned_height`` ph and ``aligned_width`` pw; ``spatial_scale``, the
            size of the map over that of the image; ``sampling_ratio``, the points along
            a side of a bin, or 0 for one in each pixel; ``aligned``, whether pixels
            have their centers at halves.

    Raises:
        NotImplementedError: For the maximum of points, which no model asks for.
    """
    if not pool_mode:
        raise NotImplementedError("pool_mode must be 'avg', got 'max'")
    input, rois, output, *_ = tensors
    scale, bins, *rest = _settings(options)
    features = wide(input)
    regions = _finite(rois).to(features.dtype)
    output.copy_(roi_align(features, regions, bins, scale, *rest))


def roi_align_backward(*tensors: Tensor, pool_mode: int, **options: float) -> None:
    """Add the gradient of :func:`roi_align_forward` to the last tensor."""
    grad_output, rois, _, _, grad_input = tensors
    scale, bins, *rest = _settings(options)
    grad, shape = wide(grad_output), grad_input.shape
    # autograd would need the maps, which mmcv does not keep
    grad_input += torch.ops.torchvision._roi_align_backward(
        grad, _finite(rois).to(grad.dtype), scale, *bins, *shape, *rest
    )


def _settings(options: dict[str, float]) -> tuple:
    """The scale, the bins, the points along a side, and whether pixels are aligned."""
    bins = int(options['aligned_height']), int(options['aligned_width'])
    points, aligned = int(options['sampling_ratio']), bool(options['aligned'])
    return options['spatial_scale'], bins, points, aligned


def _finite(rois: Tensor) -> Tensor:
    """Regions; one with NaN, with which torchvision crashes, is of no size."""
    return wide(rois).where(rois.isfinite().all(1, keepdim=True), 0.0)
