"""Focal losses. Letters: N, samples; C, classes; p, the probability of a class.

Source: Lin et al., Focal Loss for Dense Object Detection, ICCV 2017, equation 5. The
logarithms are mmcv's, which are less exact than torchvision's where p is near 0 or 1.

All take logits (N, C), or their softmax; targets (N,), long, of which C is the
background and -1 is ignored; weights of classes (C,), or an empty tensor; the output,
last; ``gamma``, the exponent γ; ``alpha``, the target's weight α.
"""

import torch
from torch import Tensor

from .common import wide


def sigmoid_focal_loss_forward(*tensors: Tensor, gamma: float, alpha: float) -> None:
    """Fill (N, C) with -α(1-p)^γ log p for the target, else -(1-α)p^γ log(1-p)."""
    input, target, weight, output = tensors
    p, here = wide(input).sigmoid(), _is_target(input, target)
    near = -alpha * (1 - p) ** gamma * _log(p)
    far = -(1 - alpha) * p**gamma * _log(1 - p)
    output.copy_(torch.where(here, near, far) * _factor(weight, target)[:, None])


def sigmoid_focal_loss_backward(*tensors: Tensor, gamma: float, alpha: float) -> None:
    """Fill (N, C) with the derivative of the loss by the logits."""
    input, target, weight, grad_input = tensors
    p, here = wide(input).sigmoid(), _is_target(input, target)
    near = -alpha * (1 - p) ** gamma * (1 - p - gamma * p * _log(p))
    far = -(1 - alpha) * p**gamma * (gamma * (1 - p) * _log(1 - p) - p)
    grad_input.copy_(torch.where(here, near, far) * _factor(weight, target)[:, None])


def softmax_focal_loss_forward(*tensors: Tensor, gamma: float, alpha: float) -> None:
    """Fill (N,) with -α(1-p)^γ log p."""
    input, target, weight, output = tensors
    p = wide(input).gather(1, target.clamp(min=0)[:, None])[:, 0]
    output.copy_(-alpha * (1 - p) ** gamma * _log(p) * _factor(weight, target))


def softmax_focal_loss_backward(*tensors: Tensor, gamma: float, alpha: float) -> None:
    """Fill (N, C) with the derivative of the loss by the logits."""
    input, target, weight, _, grad_input = tensors
    softmax = wide(input)
    p = softmax.gather(1, target.clamp(min=0)[:, None])[:, 0]
    slope = gamma * (1 - p) ** (gamma - 1) * p * _log(p) - (1 - p) ** gamma
    change = alpha * slope * _factor(weight, target)
    grad_input.copy_(change[:, None] * (_is_target(input, target).float() - softmax))


def _log(p: Tensor) -> Tensor:
    return p.clamp(min=torch.finfo(torch.float32).tiny).log()


def _is_target(input: Tensor, target: Tensor) -> Tensor:
    return target[:, None] == torch.arange(input.shape[1], device=input.device)


def _factor(weight: Tensor, target: Tensor) -> Tensor:
    """The weight of each sample, (N,)."""
    valid = target >= 0
    return wide(weight)[target.clamp(min=0)] * valid if weight.numel() else valid
