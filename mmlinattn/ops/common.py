"""Parts that the operators share: precision and gradients."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """Return float16 and bfloat16 as float32, anything else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def add_gradients(
    grads: Sequence[Tensor], function: Callable, inputs: Sequence[Tensor], grad: Tensor
) -> None:
    """Add to ``grads`` the gradients of ``function(*inputs)``, times ``grad``."""
    inputs = [wide(x).detach().requires_grad_() for x in inputs]
    with torch.enable_grad():
        found = torch.autograd.grad(function(*inputs), inputs, wide(grad))
    for place, more in zip(grads, found):
        place += more
