"""Images of several sizes in one batch: their padding, and how a model leaves it out.

mm's data preprocessors pad the images of a batch with zeros at the right and at the
bottom. An attention that sees all of the map would take them for a part of the scene.

Legend: B batch, C channels, (H, W) canvas, (h, w) valid region of an image.
"""

import math
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmlinattn.functional import to_map, to_tokens
from mmlinattn.functional.tracing import can_read_values, ceil_div

from .initialization import BaseModule
from .types import HW

# a part of a model: a map (b, C, h, w) to outputs that begin with b
MapFunction = Callable[[Tensor], Sequence[Tensor]]


def has_padding(images: Tensor) -> bool:
    """Return whether the last row or the last column of an image (B, C, H, W) is
    zero."""
    last_row = images[:, :, -1].flatten(1).any(1)
    last_column = images[:, :, :, -1].flatten(1).any(1)
    return not bool((last_row & last_column).all())


def valid_sizes(images: Tensor, min_side: int) -> list[HW]:
    """Return height and width of each image of a batch without its padding.

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
    """Return sizes of maps whose sides are ceil(side / stride)."""
    return [
        (ceil_div(height, stride), ceil_div(width, stride)) for height, width in sizes
    ]


def by_size(function: MapFunction, maps: Tensor, sizes: Sequence[HW]) -> list[Tensor]:
    """Apply a function to the valid region of each map; those of one size share a call.

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
    """Return the upper left part (B, C, h, w) of maps (B, C, H, W)."""
    return maps[:, :, : size[0], : size[1]]


def pad_to(maps: Tensor, canvas: HW) -> Tensor:
    """Zero-pad maps (B, C, h, w) at the right and at the bottom to (B, C, H, W)."""
    below, right = canvas[0] - maps.size(2), canvas[1] - maps.size(3)
    return nn.functional.pad(maps, (0, right, 0, below)) if below or right else maps


def trains_batch_norm(*modules: nn.Module) -> bool:
    """Return whether a BatchNorm in one of the modules uses the statistics of its
    batch."""
    return any(
        isinstance(layer, _BatchNorm) and layer.training
        for module in modules
        for layer in module.modules()
    )


def is_sharded(module: nn.Module) -> bool:
    """Return whether FSDP gathers parts of a module when they run."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return False
    names = {base.__name__ for part in module.modules() for base in type(part).mro()}
    return bool(names & {'FullyShardedDataParallel', 'FSDPModule'})


class PaddedModule(BaseModule):
    """A model of images that leaves their padding out: a base of all backbones.

    A subclass has ``feature_strides``, ``out_type`` and ``min_side`` (see
    :class:`~mmlinattn.models.BaseBackbone`), runs without looking for padding
    (:meth:`run`), and lists what runs once for each size of an image (:meth:`parts`).

    Args:
        mask_padding (bool | str): True leaves padding out, False does not, and
            'evaluation' does so in evaluation mode.
        init_cfg (dict | list[dict], optional): See
            :class:`~.initialization.BaseModule`.

    Raises:
        ValueError: If ``mask_padding`` is anything else, such as 1.
    """

    min_side: int
    out_type: str

    def __init__(self, mask_padding: Union[bool, str], init_cfg: Any = None) -> None:
        super().__init__(init_cfg)
        if not isinstance(mask_padding, bool) and mask_padding != 'evaluation':
            raise ValueError(
                "mask_padding must be True, False or 'evaluation', got "
                f'{mask_padding!r}'
            )
        self.mask_padding = mask_padding

    @property
    def feature_strides(self) -> tuple[int, ...]:
        """Strides of the outputs."""
        raise NotImplementedError

    def run(self, x: Tensor, sizes: Optional[list[HW]] = None) -> tuple[Tensor, ...]:
        """Return the outputs of :meth:`run_without_padding` for images x (B, C, H, W),
        which are zero beyond their ``sizes``, one (h, w) each. Without these, all of x
        is valid."""
        raise NotImplementedError

    def parts(self) -> list[nn.Module]:
        """Return the modules that run once for each size of the images in a batch."""
        raise NotImplementedError

    def run_without_padding(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs for images x (B, C, H, W), whose maps are zero beyond the
        valid region of each image, if padding is to be left out."""
        sizes = self.sizes_without_padding(x)
        if sizes is None:
            return self.run(x)
        canvas = (x.size(2), x.size(3))
        largest = (max(size[0] for size in sizes), max(size[1] for size in sizes))
        is_one_size = set(sizes) == {largest}
        outs = self.run(crop(x, largest), None if is_one_size else sizes)
        laid_back = []
        for out, stride in zip(outs, self.feature_strides):
            size, stage_canvas = after_stride((largest, canvas), stride)
            laid_back.append(self.lay_back(out, size, stage_canvas))
        return tuple(laid_back)

    def sizes_without_padding(self, x: Tensor) -> Optional[list[HW]]:
        """Return the valid height and width of each image, or None if nothing is to be
        left out.

        That is so where values can't be read, and where each process must call a layer
        equally often: blocks that FSDP shards, or that have a BatchNorm in training.
        """
        masks = self.mask_padding is True or (self.mask_padding and not self.training)
        if not masks or not can_read_values(x):
            return None
        if not has_padding(x) or is_sharded(self) or trains_batch_norm(*self.parts()):
            return None
        sizes = valid_sizes(x, self.min_side)
        return None if set(sizes) == {(x.size(2), x.size(3))} else sizes

    def lay_back(self, out: Tensor, hw_shape: HW, canvas: HW) -> Tensor:
        """Return the output of a stage for a map (h, w), as that of the canvas (H, W),
        which is zero beyond it."""
        if self.out_type == 'featmap':
            return pad_to(out, canvas)
        if self.out_type != 'raw':
            return out
        num_tokens = math.prod(hw_shape)
        extra, tokens = out.split((out.size(1) - num_tokens, num_tokens), dim=1)
        maps = pad_to(to_map(tokens, hw_shape), canvas)
        return torch.cat((extra, to_tokens(maps)), dim=1)
