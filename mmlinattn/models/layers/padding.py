"""Images of several sizes in one batch: their padding, and how a model leaves it out.

mm's data preprocessors pad the images of a batch with zeros at the right and at the
bottom. An attention that sees all of the map would take them for a part of the scene.

Legend: B batch, C channels, (H, W) canvas, (h, w) valid region of an image.
"""

from collections.abc import Sequence
from typing import Callable

import torch
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import Tensor, nn

from mmlinattn.functional.tracing import ceil_div

from .types import HW

# a part of a model: a map (b, C, h, w) to outputs that begin with b
MapFunction = Callable[[Tensor], Sequence[Tensor]]


def has_padding(images: Tensor) -> bool:
    """Whether the last row or the last column of an image (B, C, H, W) is zero."""
    last_row = images[:, :, -1].flatten(1).any(1)
    last_column = images[:, :, :, -1].flatten(1).any(1)
    return not bool((last_row & last_column).all())


def valid_sizes(images: Tensor, min_side: int) -> list[HW]:
    """Height and width of each image of a batch without its padding.

    Padding is the rows at the bottom and the columns at the right that are exactly zero
    in all channels. An image that is zero everywhere has none.

    Args:
        images (Tensor): (B, C, H, W).
        min_side (int): Smallest height and width to return, at most H and W.

    Returns:
        list[tuple[int, int]]: (h, w) of each image.
    """
    is_set = (images != 0).any(1)
    sides = []
    for axis, canvas in ((2, images.size(2)), (1, images.size(3))):
        places = torch.arange(1, canvas + 1, device=images.device)
        side = (is_set.any(axis) * places).amax(1)
        side = torch.where(side == 0, canvas, side.clamp(min=min_side))
        sides.append(side)
    heights, widths = torch.stack(sides).tolist()
    return list(zip(heights, widths))


def after_stride(sizes: Sequence[HW], stride: int) -> list[HW]:
    """Sizes of maps whose sides are ceil(side / stride)."""
    return [
        (ceil_div(height, stride), ceil_div(width, stride)) for height, width in sizes
    ]


def by_size(function: MapFunction, maps: Tensor, sizes: Sequence[HW]) -> list[Tensor]:
    """Applies a function to the valid region of each map; those of one size share a
    call.

    Args:
        function (Callable): Takes maps (b, C, h, w), and returns outputs that begin
            with b and whose other sizes do not depend on (h, w).
        maps (Tensor): (B, C, H, W).
        sizes (Sequence[tuple[int, int]]): (h, w) of each map.

    Returns:
        list[Tensor]: The outputs for all maps, in their order.
    """
    members: dict[HW, list[int]] = {}
    for index, size in enumerate(sizes):
        members.setdefault(size, []).append(index)
    parts = [function(crop(maps[indices], size)) for size, indices in members.items()]
    order = [index for indices in members.values() for index in indices]
    places = torch.tensor(order).argsort().to(maps.device)
    return [torch.cat(outputs)[places] for outputs in zip(*parts)]


def crop(maps: Tensor, size: HW) -> Tensor:
    """The upper left part (B, C, h, w) of maps (B, C, H, W)."""
    return maps[:, :, : size[0], : size[1]]


def pad_to(maps: Tensor, canvas: HW) -> Tensor:
    """Zero-pads maps (B, C, h, w) at the right and at the bottom to (B, C, H, W)."""
    below, right = canvas[0] - maps.size(2), canvas[1] - maps.size(3)
    return nn.functional.pad(maps, (0, right, 0, below)) if below or right else maps


def trains_batch_norm(*modules: nn.Module) -> bool:
    """Whether a BatchNorm in one of the modules uses the statistics of its batch."""
    return any(
        isinstance(layer, _BatchNorm) and layer.training
        for module in modules
        for layer in module.modules()
    )


def is_sharded(module: nn.Module) -> bool:
    """Whether FSDP gathers parts of a module when they run."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return False
    names = {base.__name__ for part in module.modules() for base in type(part).mro()}
    return bool(names & {'FullyShardedDataParallel', 'FSDPModule'})
