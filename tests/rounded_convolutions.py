"""Convolutions on a CPU as a GPU computes them in half precision."""

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from mmlinattn.functional.precision import _autocast_dtype

CONVOLUTIONS = {
    getattr(torch, f'conv{kind}{n}d') for kind in ('', '_transpose') for n in (1, 2, 3)
}


class RoundedConvolutions(TorchFunctionMode):
    """Context in which convolutions round operands and results, as a GPU does, where
    autocast acts, and sum in float32. oneDNN's own have wrong results in bfloat16 where
    channels are few and strides long (pytorch/pytorch issue 169688)."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in CONVOLUTIONS:
            return func(*args, **kwargs)
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        half = _autocast_dtype('cpu') or any(x.dtype == self.dtype for x in tensors)

        def widened(x):
            return (x.to(self.dtype) if half else x).float()

        args, kwargs = tree_map_only(Tensor, widened, (args, kwargs))
        with torch.autocast('cpu', enabled=False):
            out = func(*args, **kwargs)
        return out.to(self.dtype) if half else out
