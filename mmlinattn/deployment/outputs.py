"""A model of any of the libraries as a function from images to tensors."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from mmlinattn.functional import adaptive_avg_pool2d

# lists that dense heads of mmdet return
_DENSE_OUTPUTS = ('cls_scores', 'bbox_preds')


class ExportedModel(nn.Module):
    """Images to the outputs of a model's head.

    The steps that mm libraries take in Python are excluded: normalizing images before,
    decoding boxes and resizing segmentations after. A backbone has its maps as
    outputs; a detector with a dense head maps of scores and of boxes, one of each per
    level; a segmentor and a classifier logits.

    Args:
        model (nn.Module): A backbone, or a detector, segmentor or classifier. It is
            copied.

    Raises:
        ValueError: If the outputs depend on more than the image, such as regions of
            interest.
    """

    input_name = 'images'

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.check(model)
        self.model = copy.deepcopy(model).requires_grad_(False)
        for module in self.model.modules():
            if type(module) is nn.AdaptiveAvgPool2d:
                module.__class__ = _AdaptiveAvgPool2d
        self.eval()

    def check(self, model: nn.Module) -> None:
        """Raise a ValueError for a model that can not be exported."""
        for part in ('roi_head', 'encoder', 'decoder', 'mask_head'):
            if hasattr(model, part):
                raise ValueError(
                    f'{type(model).__name__} has a {part}, which depends on more than '
                    'maps: export its backbone only'
                )

    @property
    def in_channels(self) -> int:
        """Channels of an image."""
        backbone = getattr(self.model, 'backbone', self.model)
        return getattr(backbone, 'in_channels', 3)

    def example(self, shape: tuple[int, int], batch: int) -> Tensor:
        """Return an input for exporters to run the model on."""
        return torch.zeros(batch, self.in_channels, *shape)

    def axes(self, example: Tensor) -> dict[str, dict[int, str]]:
        """Return names of the variable sizes, by input and output, in their order."""
        axes = {self.input_name: {0: 'batch', 2: 'height', 3: 'width'}}
        for name, output in self.named_outputs(example):
            is_map = output.dim() == 4
            sides = {2: f'{name}_height', 3: f'{name}_width'} if is_map else {}
            axes[name] = {0: 'batch', **sides}
        return axes

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, C, H, W) to the outputs that :meth:`named_outputs` names."""
        return tuple(output for _, output in self.named_outputs(images))

    def named_outputs(self, images: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Yield names and values of the outputs for images (B, C, H, W)."""
        model: Any = self.model
        if not hasattr(model, 'backbone'):
            yield from _numbered('map', model(images))
            return
        maps = model.extract_feat(images)
        if hasattr(model, 'bbox_head'):
            for i, levels in enumerate(model.bbox_head(maps)):
                name = _DENSE_OUTPUTS[i] if i < len(_DENSE_OUTPUTS) else f'output_{i}'
                yield from _numbered(name, levels)
        elif getattr(model, 'decode_head', None) is not None:
            yield 'logits', model.decode_head(maps)
        elif getattr(model, 'head', None) is not None:
            yield 'logits', model.head(maps)
        else:
            yield from _numbered('map', maps)


class _AdaptiveAvgPool2d(nn.AdaptiveAvgPool2d):
    def forward(self, x: Tensor) -> Tensor:
        size: Any = self.output_size
        return adaptive_avg_pool2d(x, size)


def _numbered(name: str, outputs: Any) -> Iterator[tuple[str, Tensor]]:
    for i, output in enumerate(outputs):
        yield f'{name}_{i}', output
