"""mmcv's operators on torchvision and PyTorch, for an mmcv without its compiled part.

``mmcv.ops`` calls one module, ``mmcv._ext``, which mmcv-lite lacks. The functions here
have the names and arguments of its calls: tensors by position, options by name. Most
fill an output that they are given, and the ``_backward`` ones add to gradients. They
run on all devices of PyTorch and torchvision, float16 and bfloat16 in float32.

Letters: N, images or boxes; R, regions; C, channels; H and W, a map's height and width;
ph and pw, bins of a region. Boxes are x1, y1, x2, y2 in pixels.
"""

from collections.abc import Callable
from importlib import import_module

MODULES = ('boxes', 'deformable', 'losses', 'maps', 'regions')


def find(name: str) -> Callable:
    """Return the operator that ``mmcv._ext`` has by this name.

    Raises:
        NotImplementedError: If it is not here.
    """
    modules = [import_module(f'mmlinattn.ops.{module}') for module in MODULES]
    for scope in (globals(), *map(vars, modules)):
        if name in scope:
            return scope[name]
    raise NotImplementedError(
        f'{name} is not among the operators of mmlinattn, only in a compiled mmcv: '
        "pip uninstall mmcv-lite, then mim install 'mmcv>=2.0.0,<2.2.0'"
    )


def get_compiler_version() -> str:
    """Return a text for reports, where a compiled mmcv names its compiler."""
    return 'none (mmlinattn.ops)'


get_compiling_cuda_version = get_compiler_version
