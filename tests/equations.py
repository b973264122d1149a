"""What tests of equations share."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def tokens(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


def paper_kernel(q, k):
    """exp(-|q_i - k_j|^2 / 2), pair by pair."""
    return (-(q[..., :, None, :] - k[..., None, :, :]).square().sum(-1) / 2).exp()


def paper_pinv(a, alpha, num_iters=20):
    """The literal iteration."""
    inverse = alpha * a
    for _ in range(num_iters):
        inverse = 2 * inverse - inverse @ a @ inverse
    return inverse


def relative_error(result, expected):
    return ((result.double() - expected).norm() / expected.norm()).item()


class Largest(TorchDispatchMode):
    """Entries of the largest tensor that an operation makes."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple) else (out,):
            if isinstance(x, torch.Tensor):
                self.entries = max(self.entries, x.numel())
        return out
