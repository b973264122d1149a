"""What PyTorch lacks on Apple's GPUs (MPS), on a machine without one."""

import re
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

EVERYWHERE = {
    'MPS',
    'CompositeExplicitAutograd',
    'CompositeExplicitAutogradNonFunctional',
    'CompositeImplicitAutograd',
}
# A CPU's forms of fused softmax attention, which has others on other devices.
FUSED_ATTENTION = '_scaled_dot_product_flash_attention'
# PyTorch has these on MPS in later versions than 2.1.
SINCE_2_1 = {
    *('upsample_bicubic2d', 'upsample_bicubic2d_backward', 'linalg_cholesky_ex', 'sgn')
}
# torchvision has kernels for them on MPS.
OF_TORCHVISION = {'nms', 'roi_align', '_roi_align_backward'}


@cache
def read_operators():
    """By an operator's name, its devices, and the operator that it delegates to.

    torch installs torchgen, and with it the file that its own dispatcher is made of.
    """
    folder = Path(find_spec('torchgen').origin).parent
    path = folder / 'packaged/ATen/native/native_functions.yaml'
    operators = {}
    for block in re.split(r'^- func: ', path.read_text('utf-8'), flags=re.M)[1:]:
        lines = re.findall(r'^    ([\w, ]+): *\w', block, re.M)
        keys = {key.strip() for line in lines for key in line.split(',')}
        if 'dispatch:' not in block:
            keys = {'CompositeImplicitAutograd'}
        delegate = re.search(r'structured_delegate: (\S+)', block)
        operators[block.partition('(')[0]] = keys, delegate and delegate[1]
    return operators


def has_kernel(name):
    """Returns True if an operator of PyTorch's runs on MPS."""
    keys, delegate = read_operators()[name]
    return has_kernel(delegate) if delegate else bool(keys & EVERYWHERE)


def missing_in(operator, args, out):
    """Returns what MPS lacks of a call of an operator, or an empty text."""
    space, name = operator._schema.name.split('::')
    if operator._overloadname not in ('', 'default'):
        name += f'.{operator._overloadname}'
    tensors = [x for x in tree_flatten(out)[0] if isinstance(x, torch.Tensor)]
    is_double = any(x.dtype in (torch.float64, torch.complex128) for x in tensors)
    if is_double and name != 'lift_fresh':  # values of torch.tensor(), still on the CPU
        return f'float64 of {name}'
    if space == 'torchvision':
        return '' if name in OF_TORCHVISION else name
    if name == '_adaptive_avg_pool2d':
        size = args[0].shape[-2:]
        if any(side % out_side for side, out_side in zip(size, args[1])):
            return f'{name} of {tuple(size)} to {args[1]}'
    if name.startswith(FUSED_ATTENTION) or name in SINCE_2_1 or has_kernel(name):
        return ''
    return name


class Calls(TorchDispatchMode):
    """Notes which calls MPS would refuse, those of the backward pass among them."""

    def __init__(self):
        super().__init__()
        self.missing = set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        out = operator(*args, **(kwargs or {}))
        self.missing.add(missing_in(operator, args, out))
        return out


@contextmanager
def like_mps():
    """Context that fails at its end where MPS would have refused a call."""
    with Calls() as calls:
        yield
    missing = sorted(calls.missing - {''})
    assert not missing, f'MPS lacks {missing}'
