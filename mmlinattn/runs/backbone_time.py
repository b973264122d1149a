"""Time and memory of backbones at a size of images."""

from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn

from mmlinattn.parts import build_model
from mmlinattn.utils.measuring import measure_apart, peak_bytes, seconds_of

ROUNDS = 5


class Cost(NamedTuple):
    """What a backbone takes for an image.

    Attributes:
        seconds (float): Median of a forward pass.
        memory (int): Bytes at its peak, above what is there before; None where they
            can't be measured.
        parameters (int): Their number.
    """

    seconds: float
    memory: Optional[int]
    parameters: int


def measure_costs(
    backbones: Mapping[str, Mapping[str, Any]], shape: tuple[int, int], device: str
) -> dict[str, Cost]:
    """Measure backbones with random weights in evaluation mode, in turn.

    Args:
        backbones: Configs of backbones of ours, by name.
        shape: Height and width of an image.
        device: Where they run. On a CPU, memory is that of a process of its own.

    Returns:
        dict[str, Cost]: By name.
    """
    built = {name: build(cfg, device) for name, cfg in backbones.items()}
    image = torch.randn(1, 3, *shape, device=device)
    times: dict[str, list[float]] = {name: [] for name in built}
    for _ in range(ROUNDS + 1):
        for name, model in built.items():
            times[name].append(seconds(model, image))
    return {
        name: Cost(
            median(times[name][1:]),  # the first warms up
            peak_of(backbones[name], shape, device),
            sum(x.numel() for x in model.parameters()),
        )
        for name, model in built.items()
    }


def build(cfg: Mapping[str, Any], device: str) -> nn.Module:
    """Return a backbone in evaluation mode."""
    return build_model(cfg).to(device).eval()


@torch.no_grad()
def seconds(model: nn.Module, image: Tensor) -> float:
    """Return how long a forward pass takes."""
    return seconds_of(partial(model, image), str(image.device))


def peak_of(
    cfg: Mapping[str, Any], shape: tuple[int, int], device: str
) -> Optional[int]:
    """Return bytes of a forward pass; on a CPU, of a process of its own."""
    return measure_apart(partial(_peak, cfg, shape, device), device)


@torch.no_grad()
def _peak(cfg: Mapping[str, Any], shape: tuple[int, int], device: str) -> Optional[int]:
    model, image = build(cfg, device), torch.randn(1, 3, *shape, device=device)
    step = partial(model, image)
    step()
    return peak_bytes(step, device)
