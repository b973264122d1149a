"""Compares what a file computes with the model that it was made of."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .outputs import ExportedModel


def parity(
    model: ExportedModel, run: Callable[[Tensor], Sequence[Tensor]], images: Tensor
) -> dict[str, float]:
    """Largest difference of each output, relative to its largest entry.

    Args:
        model (ExportedModel): The model.
        run (Callable): Runs the file, as :func:`~.formats.export` returns it.
        images (Tensor): (B, C, H, W).

    Returns:
        dict[str, float]: By output. Infinity stands for values that are not finite
        in one of the two only, and for another shape.
    """
    with torch.no_grad():
        expected = dict(model.named_outputs(images))
        results = run(images)
    return {
        name: _difference(result, wanted)
        for (name, wanted), result in zip(expected.items(), results)
    }


def _difference(result: Tensor, wanted: Tensor) -> float:
    if result.shape != wanted.shape:
        return float('inf')
    difference = ((result - wanted).abs().amax() / wanted.abs().amax()).item()
    return difference if difference == difference else float('inf')
