"""mmcv's operators on torchvision and PyTorch, from mmlinattn.

`python -m mmlinattn.ops --install` copies this file beside mmcv's, where mmcv has no
compiled part, and `--remove` removes it.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

if find_spec('mmlinattn') is None:
    raise ModuleNotFoundError(
        f'{__file__} needs mmlinattn, which is not installed: install it, or remove '
        'this file and install a compiled mmcv',
        name='mmlinattn',
    )


def __getattr__(name: str) -> Callable:
    # mmcv looks up all names when mmcv.cnn is imported, and calls few of them
    if name.startswith('__'):
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')

    def operator(*tensors: Any, **options: Any) -> Any:
        from mmlinattn import ops

        return ops.find(name)(*tensors, **options)

    return operator
