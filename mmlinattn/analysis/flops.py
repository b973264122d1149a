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

import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from functools import wraps
from math import prod
from typing import Any, Callable, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from mmlinattn.functional import (
    cholesky_solve,
    gaussian_attention,
    gaussian_kernel,
    kernel_products,
    newton_pinv,
    softmax_free_attention,
)

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

# Multiply-accumulates of an operation, from its arguments and its result.
Formula = Callable[[Any, Any], int]


class FlopCount:
    """Multiply-accumulates of a model by module and kind.

    Args:
        macs (dict): Multiply-accumulates by (module name, kind), the kinds
            being those of ``KINDS``; each is counted once, at the innermost
            module that did it.
    """

    def __init__(self, macs: Mapping[tuple[str, str], int]) -> None:
        self.macs = dict(macs)

    def by_kind(self, part: str = '') -> dict[str, int]:
        """Multiply-accumulates of a part of the model.

        Args:
            part (str): Name of a module; '' is the whole model.

        Returns:
            dict[str, int]: One entry for each of ``KINDS``.
        """
        kinds = dict.fromkeys(KINDS, 0)
        for (module, kind), macs in self.macs.items():
            if not part or f'{module}.'.startswith(f'{part}.'):
                kinds[kind] += macs
        return kinds

    def total(self, part: str = '') -> int:
        """Sum of :meth:`by_kind`."""
        return sum(self.by_kind(part).values())

    def without_softmax_attention(self, part: str = '') -> int:
        """:meth:`total` less the products of softmax attention."""
        return self.total(part) - self.by_kind(part)['softmax_attention']


def count_flops(
    model: nn.Module, *inputs: Any, forward: Optional[Callable[..., Any]] = None
) -> FlopCount:
    """Counts the FLOPs of one forward pass; see the module's docstring.

    Softmax attention is recognized in ``scaled_dot_product_attention``. A module that
    writes it out has the class attribute ``product_kind = 'softmax_attention'``, or is
    one of ``SOFTMAX_ATTENTIONS``; the products of others are of kind 'matmul'.

    Args:
        model (nn.Module): The model, on the device of its inputs. It runs in
            eval mode, and returns to its own mode.
        *inputs: Its inputs.
        forward (callable, optional): Called with the inputs in place of
            ``model``, for a part of it or another call.

    Returns:
        FlopCount: The multiply-accumulates of the whole batch.
    """
    tally = _Tally()
    with ExitStack() as stack:
        for name, module in model.named_modules():
            stack.callback(setattr, module, 'training', module.training)
            # not hooks: some libraries call forward() without them
            own = vars(module)
            if 'forward' in own:
                stack.callback(own.__setitem__, 'forward', own['forward'])
            else:
                stack.callback(own.pop, 'forward')
            own['forward'] = tally.watch(module.forward, _product_kind(module), name)
        for module in filter(None, map(sys.modules.get, _CALLERS)):
            for function, (counted, kind) in _OUR_PRODUCTS.items():
                name = function.__name__
                if name in vars(module):
                    stack.callback(setattr, module, name, function)
                    setattr(module, name, tally.watch(counted, kind))
        model.eval()
        stack.enter_context(torch.no_grad())
        stack.enter_context(_FunctionMode(tally))
        stack.enter_context(tally)
        (forward or model)(*inputs)
    return FlopCount(tally.macs)


def _product_kind(module: nn.Module) -> Optional[str]:
    is_softmax = type(module).__name__ in SOFTMAX_ATTENTIONS
    return getattr(module, 'product_kind', 'softmax_attention' if is_softmax else None)


def _explicit_products(q: Tensor, k: Tensor) -> tuple[Callable, Callable]:
    kernel = gaussian_kernel(q, k)
    return lambda v: kernel @ v, lambda y: kernel.mT @ y


def _explicit_attention(q: Tensor, k: Tensor, v: Tensor, softmax: bool) -> Tensor:
    kernel = gaussian_kernel(q, k)
    return (kernel.softmax(-1) if softmax else kernel) @ v


def _newton_steps(*args: Any, pinv: Any = newton_pinv, **kwargs: Any) -> Tensor:
    # while it is counted, this function replaces `newton_pinv`
    return pinv(*args, **{**kwargs, 'solver': 'newton'})


# The modules that call them.
_CALLERS = tuple(
    f'mmlinattn.{name}'
    for name in (
        'functional',
        'functional.softmax_free.attention',
        'models.attentions.gaussian',
        'models.attentions.softmax_free',
    )
)
# Our functions, each with the one that is counted in its place, and its products' kind.
_OUR_PRODUCTS: dict[Callable[..., Any], tuple[Callable[..., Any], str]] = {
    softmax_free_attention: (softmax_free_attention, 'gaussian_kernel'),
    gaussian_attention: (_explicit_attention, 'gaussian_kernel'),
    kernel_products: (_explicit_products, 'gaussian_kernel'),
    newton_pinv: (_newton_steps, 'pseudo_inverse'),
    cholesky_solve: (cholesky_solve, 'pseudo_inverse'),
}


class _Tally(TorchDispatchMode):
    """Adds up the operations that do the work, by module and kind of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.macs: Counter[tuple[str, str]] = Counter()
        self.module = ''
        self.product_kind = 'matmul'
        self.muted = False

    def add(self, kind: str, macs: int) -> None:
        if not self.muted:
            kind = self.product_kind if kind == 'matmul' else kind
            self.macs[self.module, kind] += macs

    def add_attention(self, query: Tensor, key: Tensor, out: Tensor) -> None:
        """Products QK^T and AV of (..., N_q, d), (..., N_k, d) and (..., N_q, d_v)."""
        num_scores = prod(out.shape[:-1]) * key.size(-2)
        self.add('softmax_attention', num_scores * (query.size(-1) + out.size(-1)))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        # 'mm_' is 'mm' in place
        name = func.overloadpacket.__name__.removesuffix('_')
        if name.startswith('_scaled_dot_product'):
            self.add_attention(args[0], args[1], out[0])
        elif name in _OPERATIONS:
            kind, formula = _OPERATIONS[name]
            self.add(kind, formula(args, out))
        return out

    def watch(
        self,
        function: Callable[..., Any],
        kind: Optional[str] = None,
        module: Optional[str] = None,
    ) -> Callable[..., Any]:
        """Wraps a function to note the kind of its batched products and its module."""

        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            outside = self.module, self.product_kind
            self.module = self.module if module is None else module
            self.product_kind = kind or self.product_kind
            out = function(*args, **kwargs)
            self.module, self.product_kind = outside
            return out

        return watched


class _FunctionMode(TorchFunctionMode):
    """Counts functions whose operations depend on the device and the version."""

    def __init__(self, tally: _Tally) -> None:
        super().__init__()
        self.tally = tally

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            named = {**dict(zip(('query', 'key'), args)), **kwargs}
            # fused or not, its products must not be counted twice
            self.tally.muted = True
            out = func(*args, **kwargs)
            self.tally.muted = False
            self.tally.add_attention(named['query'], named['key'], out)
            return out
        if func is F.adaptive_avg_pool2d:
            self.tally.add('resampling', args[0].numel())
        return func(*args, **kwargs)


def _conv(args: Any, out: Any) -> int:
    x, weight, transposed = args[0], args[1], args[6]
    # a filter is applied once for each of its own positions and channels
    return (x if transposed else out).numel() * prod(weight.shape[1:])


def _product(matrix: int, factor: int) -> Formula:
    """Matrix product of two arguments, given by their places."""
    return lambda args, out: args[matrix].numel() * args[factor].size(-1)


def _per_input(place: int) -> Formula:
    return lambda args, out: args[place].numel()


def _norm(weight: int) -> Formula:
    return lambda args, out: args[0].numel() * (4 if args[weight] is None else 5)


def _batch_norm(args: Any, out: Any) -> int:
    if args[5]:  # the batch's own statistics, as in InstanceNorm
        return _norm(1)(args, out)
    return args[0].numel() * (1 if args[1] is None else 2)


def _per_output(cost: int) -> Formula:
    return lambda args, out: cost * out.numel()


# ATen operation -> kind and formula
_OPERATIONS: dict[str, tuple[str, Formula]] = {
    'convolution': ('conv', _conv),
    'mm': ('linear', _product(0, 1)),
    'addmm': ('linear', _product(1, 2)),
    'mv': ('linear', _per_input(0)),
    'addmv': ('linear', _per_input(1)),
    'bmm': ('matmul', _product(0, 1)),
    'baddbmm': ('matmul', _product(1, 2)),
    'dot': ('matmul', _per_input(0)),
    'linalg_cholesky_ex': ('matmul', lambda args, out: _product(0, 0)(args, out) // 6),
    'linalg_solve_triangular': (
        'matmul',
        lambda args, out: _product(0, 1)(args, out) // 2,
    ),
    'native_layer_norm': ('norm', _norm(2)),
    'native_group_norm': ('norm', _norm(1)),
    'native_batch_norm': ('norm', _batch_norm),
    'cudnn_batch_norm': ('norm', _batch_norm),
    'upsample_bilinear2d': ('resampling', _per_output(4)),
    'upsample_nearest2d': ('resampling', _per_output(1)),
}
