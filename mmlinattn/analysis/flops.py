"""FLOPs of a model, with every product of its attentions.

As in the papers and in fvcore's and MMEngine's counters, one FLOP is one
multiply-accumulate. Counted, in eval mode:

- convolutions and matrix products, by their sizes; biases are free;
- 5 per element of a LayerNorm or GroupNorm, 2 of a BatchNorm (1 less without
  weights); 4 per output element of bilinear and 1 of nearest resizing, 1 per
  input element of adaptive average pooling;
- what those counters miss, the products of
  :func:`torch.nn.functional.scaled_dot_product_attention`:
  N_q * N_k * d for QK^T and as much for AV, masked entries included;
- the Newton-Raphson pseudo-inverse of softmax-free attention as the model
  states it, 2 m^3 a step, by whichever solver it is computed.

Element-wise functions (activations, softmax, exp, additions) and the custom
operations of mmcv (RoIAlign, deformable convolution) are not counted. Nothing
depends on the values, the device or the torch version, so that a model on the
meta device is counted at any size in no time.
"""

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
    gaussian_kernel,
    kernel_products,
    newton_pinv,
    softmax_free_attention,
)

from .substitution import substituted

KINDS = {
    'conv': 'convolutions',
    'linear': 'projections: products of a matrix with shared weights',
    'matmul': 'batched products outside of the attentions below',
    'norm': 'normalization layers',
    'resampling': 'resizing and pooling',
    'softmax_attention': 'products of softmax attention',
    'gaussian_kernel': 'products with the kernels of softmax-free attention',
    'pseudo_inverse': 'its pseudo-inverse: Newton-Raphson steps, or Cholesky',
}

# Modules that may write softmax attention out, by name: torch's and that of mmcv
# and mmpretrain, ours, and the one of Swin in mmdet, mmseg and mmpretrain.
SOFTMAX_ATTENTIONS = ('MultiheadAttention', 'TalkingHeadsAttention', 'WindowMSA')


# Multiply-accumulates of an operation, by its arguments and its result.
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
    """Counts the FLOPs of one forward pass; the module's docstring says how.

    Softmax attention is recognized in ``scaled_dot_product_attention`` and in
    the modules of ``SOFTMAX_ATTENTIONS``; where another module writes it out,
    its products are of kind 'matmul'.

    Args:
        model (nn.Module): The model, on the device of its inputs. It is run in
            eval mode and left in its own.
        *inputs: What it is called with.
        forward (callable, optional): Called with the inputs in place of
            ``model``, to run a part of it or in another way.

    Returns:
        FlopCount: The multiply-accumulates of the whole batch.
    """
    tally = _Tally()
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with ExitStack() as stack:
            for name, module in model.named_modules():
                attention = type(module).__name__ in SOFTMAX_ATTENTIONS
                kind = 'softmax_attention' if attention else None
                _watch_forward(stack, tally, module, kind, name)
            for function, counted, kind, options in _OUR_PRODUCTS:
                watched = tally.watch(counted, kind, options=options)
                stack.enter_context(substituted(function, watched))
            stack.enter_context(torch.no_grad())
            stack.enter_context(_FunctionMode(tally))
            stack.enter_context(_DispatchMode(tally))
            (forward or model)(*inputs)
    finally:
        for module, mode in modes:
            module.training = mode
    return FlopCount(tally.macs)


def _explicit_products(q: Tensor, k: Tensor) -> tuple[Callable, Callable]:
    kernel = gaussian_kernel(q, k)
    return lambda v: kernel @ v, lambda y: kernel.mT @ y


# Functions of ours, what is counted in their place, the kind of their batched products,
# and the arguments that make them do what they stand for.
_Function = Callable[..., Any]
_OUR_PRODUCTS: tuple[tuple[_Function, _Function, str, dict[str, Any]], ...] = (
    (softmax_free_attention, softmax_free_attention, 'gaussian_kernel', {}),
    (kernel_products, _explicit_products, 'gaussian_kernel', {}),
    (newton_pinv, newton_pinv, 'pseudo_inverse', dict(solver='newton')),
    (cholesky_solve, cholesky_solve, 'pseudo_inverse', {}),
)


def _watch_forward(
    stack: ExitStack, tally: '_Tally', module: nn.Module, kind: Optional[str], name: str
) -> None:
    """Has a module's forward pass tallied until the stack is closed."""
    # not hooks: some libraries call forward() without them
    own = vars(module)
    if 'forward' in own:
        stack.callback(own.__setitem__, 'forward', own['forward'])
    else:
        stack.callback(own.pop, 'forward')
    own['forward'] = tally.watch(module.forward, kind, module=name)


class _Tally:
    """Adds up, and knows which module and which attention is at work."""

    def __init__(self) -> None:
        self.macs: Counter[tuple[str, str]] = Counter()
        self.module = ''
        self.product_kind = 'matmul'
        self.muted = False

    def add(self, kind: str, macs: int) -> None:
        if not self.muted:
            kind = self.product_kind if kind == 'matmul' else kind
            self.macs[self.module, kind] += macs

    def watch(
        self,
        function: Callable[..., Any],
        kind: Optional[str] = None,
        module: Optional[str] = None,
        options: Optional[dict[str, Any]] = None,
    ) -> Callable[..., Any]:
        """A function that says whose and of which kind its products are.

        Args:
            function (callable): The function.
            kind (str, optional): Kind of its batched products.
            module (str, optional): Name of the module that it belongs to.
            options (dict, optional): Arguments that it is to be called with.
        """

        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            outside = self.module, self.product_kind
            self.module = self.module if module is None else module
            self.product_kind = kind or self.product_kind
            out = function(*args, **{**kwargs, **(options or {})})
            self.module, self.product_kind = outside
            return out

        return watched


class _FunctionMode(TorchFunctionMode):
    """Counts what becomes other operations on other devices and versions."""

    def __init__(self, tally: _Tally) -> None:
        super().__init__()
        self.tally = tally

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Optional[dict[str, Any]] = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            named = {**dict(zip(('query', 'key', 'value'), args)), **kwargs}
            # fused or not, its own products are not to be counted again
            self.tally.muted = True
            out = func(*args, **kwargs)
            self.tally.muted = False
            macs = _attention(named['query'], named['key'], out)
            self.tally.add('softmax_attention', macs)
            return out
        if func is F.adaptive_avg_pool2d:
            self.tally.add('resampling', args[0].numel())
        return func(*args, **kwargs)


class _DispatchMode(TorchDispatchMode):
    """Counts the operations that do the work."""

    def __init__(self, tally: _Tally) -> None:
        super().__init__()
        self.tally = tally

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Optional[dict[str, Any]] = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        # 'mm_' is 'mm' in place
        name = func.overloadpacket.__name__.removesuffix('_')
        if name.startswith('_scaled_dot_product'):
            macs = _attention(args[0], args[1], out[0])
            self.tally.add('softmax_attention', macs)
        elif name in _OPERATIONS:
            kind, formula = _OPERATIONS[name]
            self.tally.add(kind, formula(args, out))
        return out


def _attention(query: Tensor, key: Tensor, out: Tensor) -> int:
    """Products QK^T and AV of (..., N_q, d), (..., N_k, d), (..., N_q, d_v)."""
    num_scores = prod(out.shape[:-1]) * key.size(-2)
    return num_scores * (query.size(-1) + out.size(-1))


def _conv(args: Any, out: Any) -> int:
    x, weight, transposed = args[0], args[1], args[6]
    # a filter is applied once for each of its own positions and channels
    return (x if transposed else out).numel() * prod(weight.shape[1:])


def _product(matrix: int, factor: int) -> Formula:
    """Matrix product of two arguments, given by their places."""
    return lambda args, out: args[matrix].numel() * args[factor].size(-1)


def _vector_product(matrix: int) -> Formula:
    return lambda args, out: args[matrix].numel()


def _norm(weight: int) -> Formula:
    return lambda args, out: args[0].numel() * (4 if args[weight] is None else 5)


def _batch_norm(args: Any, out: Any) -> int:
    if args[5]:  # the batch's own statistics, as in InstanceNorm
        return _norm(1)(args, out)
    return args[0].numel() * (1 if args[1] is None else 2)


def _per_output(cost: int) -> Formula:
    return lambda args, out: cost * out.numel()


def _cholesky(args: Any, out: Any) -> int:
    return args[0].numel() * args[0].size(-1) // 6


def _cholesky_solve(args: Any, out: Any) -> int:
    # two triangular solves, half a product each
    return args[0].numel() * args[1].size(-1)


# ATen operation -> kind and formula
_OPERATIONS: dict[str, tuple[str, Formula]] = {
    'convolution': ('conv', _conv),
    'mm': ('linear', _product(0, 1)),
    'addmm': ('linear', _product(1, 2)),
    'mv': ('linear', _vector_product(0)),
    'addmv': ('linear', _vector_product(1)),
    'bmm': ('matmul', _product(0, 1)),
    'baddbmm': ('matmul', _product(1, 2)),
    'dot': ('matmul', _vector_product(0)),
    'linalg_cholesky_ex': ('matmul', _cholesky),
    'cholesky_solve': ('matmul', _cholesky_solve),
    'native_layer_norm': ('norm', _norm(2)),
    'native_group_norm': ('norm', _norm(1)),
    'native_batch_norm': ('norm', _batch_norm),
    'cudnn_batch_norm': ('norm', _batch_norm),
    'upsample_bilinear2d': ('resampling', _per_output(4)),
    'upsample_nearest2d': ('resampling', _per_output(1)),
}
