"""FLOPs of a model, with every product of its attentions.

One FLOP is, as in the papers and in fvcore's and MMEngine's counters, one
multiply-accumulate. These are counted, in eval mode:

- convolutions and matrix products, by their sizes; biases are free;
- 5 per element of a LayerNorm or GroupNorm, 2 of a BatchNorm (1 less without
  weights); 4 per output element of bilinear and 1 of nearest resizing, 1 per
  input element of adaptive average pooling;
- the products of :func:`torch.nn.functional.scaled_dot_product_attention`,
  which those counters miss: N_q * N_k * d for QK^T and as much for AV, masked
  entries included;
- the Newton-Raphson pseudo-inverse of softmax-free attention, 2 m^3 a step,
  whichever solver computes it.

Element-wise functions (activations, softmax, exp, additions) and the custom
operations of mmcv (RoIAlign, deformable convolution) are not counted. Nothing
depends on the values, the device or the torch version, so a model on the meta
device can be counted at any size without computing anything.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial, wraps
from math import prod
from typing import Any, Callable, Optional
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

KINDS = {
    'conv': 'convolutions',
    'linear': 'projections: products of a matrix with shared weights',
    'matmul': 'batched products outside of the attentions below',
    'norm': 'normalization layers',
    'resampling': 'resizing and pooling',
    'softmax_attention': 'products of softmax attention',
    'gaussian_kernel': 'products with Gaussian kernels',
    'pseudo_inverse': 'its pseudo-inverse: Newton-Raphson steps, or Cholesky',
}

# Modules of other libraries that may write softmax attention out, by name: torch's and
# that of mmcv and mmpretrain, and the one of Swin in mmdet, mmseg and mmpretrain.
SOFTMAX_ATTENTIONS = ('MultiheadAttention', 'WindowMSA')


@dataclass(frozen=True)
class FlopCount:
    """Multiply-accumulates by (module name, kind of ``KINDS``), each counted once, at
    the innermost module that did it."""

    macs: Mapping[tuple[str, str], int]

    def by_kind(self, part: str = '') -> dict[str, int]:
        """Count the multiply-accumulates of a module by its name, '' for the whole
        model: one entry for each of ``KINDS``."""
        kinds = dict.fromkeys(KINDS, 0)
        for (module, kind), macs in self.macs.items():
            if not part or f'{module}.'.startswith(f'{part}.'):
                kinds[kind] += macs
        return kinds

    def total(self, part: str = '') -> int:
        """Return the sum of :meth:`by_kind`."""
        return sum(self.by_kind(part).values())

    def without_softmax_attention(self, part: str = '') -> int:
        """:meth:`total` less the products of softmax attention."""
        return self.total(part) - self.by_kind(part)['softmax_attention']


def count_flops(
    model: nn.Module, *inputs: Any, forward: Optional[Callable[..., Any]] = None
) -> FlopCount:
    """Count the FLOPs of one forward pass; see the module's docstring.

    Softmax attention is recognized in ``scaled_dot_product_attention``. A module that
    writes it out has the class attribute ``product_kind = 'softmax_attention'``, or is
    one of ``SOFTMAX_ATTENTIONS``. One whose products depend on the device and on sizes
    has a method ``count_products``, which gets the arguments of ``forward`` and returns
    multiply-accumulates by kind. The products of others are of kind 'matmul'.

    Args:
        model (nn.Module): The model, on the device of its inputs. It runs in
            eval mode, and returns to its own mode.
        *inputs: Its inputs.
        forward (callable, optional): Called with the inputs in place of
            ``model``, for a part of it or another call.

    Returns:
        FlopCount: The multiply-accumulates of the whole batch.
    """
    counter = _Counter()
    with ExitStack() as stack:
        for name, module in model.named_modules():
            # not hooks: some libraries call forward() without them
            watched = dict(training=False, forward=counter.watch(module, name))
            stack.enter_context(patch.dict(vars(module), watched))
        stack.enter_context(torch.no_grad())
        stack.enter_context(_FunctionMode(counter))
        stack.enter_context(counter)
        (forward or model)(*inputs)
    return FlopCount(counter.macs)


class _Counter(FlopCounterMode):
    """PyTorch's counter, which adds up multiply-accumulates by module and kind."""

    def __init__(self) -> None:
        formulas = {
            operation: partial(self.add_operation, kind, formula)
            for operation, (kind, formula) in _FORMULAS.items()
        }
        super().__init__(display=False, custom_mapping=formulas)
        self.macs: Counter[tuple[str, str]] = Counter()
        self.module = ''
        # the kind of batched products; '' where the module counts them itself
        self.product_kind = 'matmul'

    def add(self, kind: str, macs: int) -> None:
        """Add to the innermost module."""
        if kind == 'matmul' or (kind == 'softmax_attention' and not self.product_kind):
            kind = self.product_kind
        if kind:
            self.macs[self.module, kind] += macs

    def add_operation(
        self, kind: str, formula: Any, *shapes: Any, out_shape: Any, **kwargs: Any
    ) -> int:
        """Return an entry of PyTorch's ``custom_mapping``, for shapes of the
        arguments."""
        macs = formula(shapes, out_shape)
        self.add(kind, macs)
        return macs

    def watch(self, module: nn.Module, name: str) -> Callable[..., Any]:
        """Return the forward method of a module, which notes whose operations
        follow."""
        forward, count = module.forward, getattr(module, 'count_products', None)
        kind = getattr(module, 'product_kind', None)
        if type(module).__name__ in SOFTMAX_ATTENTIONS:
            kind = 'softmax_attention'

        @wraps(forward)
        def watched(*args: Any, **kwargs: Any) -> Any:
            outside = self.module, self.product_kind
            self.module = name
            self.product_kind = '' if count else kind or self.product_kind
            out = forward(*args, **kwargs)
            products = count(*args, **kwargs) if count else {}
            self.macs.update({(name, key): macs for key, macs in products.items()})
            self.module, self.product_kind = outside
            return out

        return watched


class _FunctionMode(TorchFunctionMode):
    """Counts functions whose operations depend on the device and the version."""

    def __init__(self, counter: _Counter) -> None:
        super().__init__()
        self.counter = counter

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self.attend(*args, **kwargs)
        if func is F.adaptive_avg_pool2d:
            self.counter.add('resampling', args[0].numel())
        return func(*args, **kwargs)

    def attend(
        self, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Count the products, and return zeros of the result's shape."""
        shapes = [tensor.shape for tensor in (query, key, value)]
        batch = torch.broadcast_shapes(*(shape[:-2] for shape in shapes))
        out = value.new_zeros(*batch, query.size(-2), value.size(-1))
        self.counter.add('softmax_attention', _fused_attention(shapes, [out.shape]))
        return out


def _conv(shapes: Any, out: Any) -> int:
    maps, weight, transposed = shapes[0], shapes[1], shapes[6]
    # a filter is applied once for each of its own positions and channels
    return prod(maps if transposed else out) * prod(weight[1:])


def _product(matrix: int, factor: int) -> Any:
    """Return the matrix product of two arguments, given by their places."""
    return lambda shapes, out: prod(shapes[matrix]) * shapes[factor][-1]


def _per_input(place: int) -> Any:
    return lambda shapes, out: prod(shapes[place])


def _norm(weight: int) -> Any:
    return lambda shapes, out: prod(shapes[0]) * (4 if shapes[weight] is None else 5)


def _batch_norm(shapes: Any, out: Any) -> int:
    if shapes[5]:  # the batch's own statistics, as in InstanceNorm
        return _norm(1)(shapes, out)
    return prod(shapes[0]) * (1 if shapes[1] is None else 2)


def _per_output(cost: int) -> Any:
    return lambda shapes, out: cost * prod(out)


def _fused_attention(shapes: Any, out: Any) -> int:
    """QK^T and AV of (..., N_q, d), (..., N_k, d) and (..., N_k, d_v)."""
    query, key, value = shapes[:3]
    return prod(out[0][:-1]) * key[-2] * (query[-1] + value[-1])


_aten = torch.ops.aten
# kind, and formula of the shapes of arguments and result; other arguments are their own
_FORMULAS: dict[Any, tuple[str, Any]] = {
    _aten.convolution: ('conv', _conv),
    _aten.mm: ('linear', _product(0, 1)),
    _aten.addmm: ('linear', _product(1, 2)),
    _aten.addmm_: ('linear', _product(1, 2)),
    _aten.mv: ('linear', _per_input(0)),
    _aten.addmv: ('linear', _per_input(1)),
    _aten.bmm: ('matmul', _product(0, 1)),
    _aten.baddbmm: ('matmul', _product(1, 2)),
    _aten.baddbmm_: ('matmul', _product(1, 2)),
    _aten.dot: ('matmul', _per_input(0)),
    _aten.native_layer_norm: ('norm', _norm(2)),
    _aten.native_group_norm: ('norm', _norm(1)),
    _aten.native_batch_norm: ('norm', _batch_norm),
    _aten.cudnn_batch_norm: ('norm', _batch_norm),
    _aten.upsample_bilinear2d: ('resampling', _per_output(4)),
    _aten.upsample_nearest2d: ('resampling', _per_output(1)),
}
# where no function mode sees the function, as in torch's MultiheadAttention; a version
# has some of them
for _name in ('flash_attention', 'flash_attention_for_cpu', 'efficient_attention'):
    if hasattr(_aten, f'_scaled_dot_product_{_name}'):
        _operation = getattr(_aten, f'_scaled_dot_product_{_name}')
        _FORMULAS[_operation] = 'softmax_attention', _fused_attention
