"""mmcv's operators on torchvision and PyTorch, from mmlinattn.

`python -m mmlinattn.ops --install` copies this file beside mmcv's, where mmcv has no
compiled part, and `--remove` removes it.
"""

from importlib.util import find_spec

if find_spec('mmlinattn') is None:
    raise ModuleNotFoundError(
        f'{__file__} needs mmlinattn, which is not installed: install it, or remove '
        'this file and install a compiled mmcv',
        name='mmlinattn',
    )

from mmlinattn.ops.extension import __dir__ as __dir__
from mmlinattn.ops.extension import __getattr__ as __getattr__
