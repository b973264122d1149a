"""Deterministic algorithms, as a GPU has them, on a machine without one."""

from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# What torch.use_deterministic_algorithms refuses on a GPU. Bilinear resizing is not
# among them: PyTorch computes it by other operators then.
REFUSED = (
    *('_adaptive_avg_pool2d_backward', 'adaptive_max_pool2d_backward'),
    *('upsample_bicubic2d_backward', 'upsample_linear1d_backward'),
    *('grid_sampler_2d_backward', 'reflection_pad2d_backward'),
    *('replication_pad2d_backward', 'max_unpool2d', 'nll_loss2d_forward'),
    *('cumsum', 'histc', 'kthvalue', 'median', 'put_', 'bincount', 'scatter_reduce'),
)


class Operators(TorchDispatchMode):
    """Notes the names of operators, those of the backward pass among them."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.add(operator.overloadpacket.__name__)
        return operator(*args, **(kwargs or {}))


@contextmanager
def deterministic_algorithms():
    """Context of deterministic algorithms that fails where a GPU would."""
    torch.use_deterministic_algorithms(True)
    try:
        with Operators() as operators:
            yield
    finally:
        torch.use_deterministic_algorithms(False)
    refused = sorted(operators.names & set(REFUSED))
    assert not refused, f'a GPU has no deterministic {refused}'
