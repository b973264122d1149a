"""Focal loss. Letters: N, samples; C, classes; p, the probability of a class.

Source: Lin et al., Focal Loss for Dense Object Detection, ICCV 2017, equation 5. The
logarithms are mmcv's, which are less exact than torchvision's where p is near 0 or 1.

Both take logits (N, C); targets (N,), long, of which C is the background and -1 is
ignored; weights of classes (C,), or an empty tensor; the output; ``gamma``, the
exponent γ; ``alpha``, the target's weight α.
"""

import torch
from torch import Tensor

from .common import wide


def sigmoid_focal_loss_forward(
    input: Tensor,
    target: Tensor,
    weight: Tensor,
    output: Tensor,
    *,
    gamma: float,
    alpha: float,
) -> None:
    """Fill (N, C) with -α(1-p)^γ log p for the target, else -(1-α)p^γ log(1-p)."""
    p, here = wide(input).sigmoid(), _is_target(input, target)
    near = -alpha * (1 - p) ** gamma * _log(p)
    far = -(1 - alpha) * p**gamma * _log(1 - p)
    output.copy_(torch.where(here, near, far) * _factor(weight, target)[:, None])


def sigmoid_focal_loss_backward(
    input: Tensor,
    target: Tensor,
    weight: Tensor,
    grad_input: Tensor,
    *,
    gamma: float,
    alpha: float,
) -> None:
    """Fill (N, C) with the derivative of the loss by the logits."""
    p, here = wide(input).sigmoid(), _is_target(input, target)
    near = -alpha * (1 - p) ** gamma * (1 - p - gamma * p * _log(p))
    far = -(1 - alpha) * p**gamma * (gamma * (1 - p) * _log(1 - p) - p)
    grad_input.copy_(torch.where(here, near, far) * _factor(weight, target)[:, None])


def _log(p: Tensor) -> Tensor:
    return p.clamp(min=torch.finfo(torch.float32).tiny).log()


def _is_target(input: Tensor, target: Tensor) -> Tensor:
    return target[:, None] == torch.arange(input.shape[1], device=input.device)


def _factor(weight: Tensor, target: Tensor) -> Tensor:
    """Return the weight of each sample, (N,)."""
    valid = target >= 0
    return wide(weight)[target.clamp(min=0)] * valid if weight.numel() else valid
