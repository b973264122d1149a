"""Linear attention for vision: backbones for PyTorch, timm and the OpenMMLab libraries.

Importing the package costs nothing: it imports no library. Functions, models, weights,
measures and exports need torch alone; registries, configs, hooks and tools need
MMEngine, which imports ``mmlinattn.registry`` by itself when a config says
``type='mmlinattn.X'``.

No import changes the process, but that names of ours are known to MMEngine and, with
``mmlinattn.timm``, to timm. What else there is to change, a program asks for:

- :func:`register`: our configs and weights are found by name;
- :func:`mmlinattn.ops.enable`: operators for an mmcv without its compiled part;
- :func:`mmlinattn.weights.load_safely`: checkpoints of any model are read without
  running code in them. Our tools call the last two.
"""

import re
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec

from .version import __version__, version_info

__all__ = ['__version__', 'register', 'version_info']


def register() -> None:
    """Make our configs and weights known: see :func:`mmlinattn.hub.register`."""
    from . import hub

    hub.register()


def check_versions() -> None:
    """Compare the installed MMEngine and mmcv with the supported versions, without
    importing them.

    Raises:
        ImportError: If MMEngine is missing, or either has a version that doesn't fit.
    """
    for module, (names, minimum, below, hint) in _LIBRARIES.items():
        needs = f'mmlinattn {__version__} needs {module}>={minimum},<{below}'
        versions = {}
        for name in names:
            with suppress(metadata.PackageNotFoundError):
                versions[name] = metadata.version(name)
        for name, version in versions.items():
            if not _numbers(minimum) <= _numbers(version) < _numbers(below):
                raise ImportError(
                    f'{needs}, but {name} {version} is installed. Try: {hint}'
                )
        # Nothing needs mmcv. A source tree on PYTHONPATH has no metadata.
        if module == 'mmengine' and not versions and find_spec(module) is None:
            raise ImportError(
                f'{needs}, but none of {", ".join(names)} is installed. Try: {hint}'
            )


def check_numpy() -> None:
    """Compare the installed numpy with torch, without importing them. Models work
    beside another numpy, but nothing that makes tensors of photos.

    Raises:
        ImportError: If torch is built for numpy 1, and numpy 2 is installed.
    """
    versions = {}
    for name in ('numpy', 'torch'):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    if len(versions) < 2:
        return
    if _numbers(versions['numpy'])[0] >= 2 and _numbers(versions['torch']) < [2, 3]:
        raise ImportError(
            f'numpy {versions["numpy"]} is installed, but torch {versions["torch"]} is '
            "built for numpy 1. Try: pip install 'numpy<2'"
        )


# distributions of a library, the oldest version, the first that is too new, the remedy
_LIBRARIES = {
    'mmengine': (
        ('mmengine', 'onedl-mmengine'),
        '0.10.0',
        '1.0.0',
        "pip install 'mmengine>=0.10.0,<1.0.0' "
        "(with the onedl packages: 'onedl-mmengine>=0.10.8,<1.0.0')",
    ),
    'mmcv': (
        ('mmcv', 'mmcv-lite', 'mmcv-full', 'onedl-mmcv'),
        '2.0.0',
        '3.0.0',
        "mim install 'mmcv>=2.0.0,<2.2.0' "
        "(with the onedl packages: mim install 'onedl-mmcv>=2.3.0,<3.0.0')",
    ),
}


def _numbers(version: str) -> list[int]:
    """Return the first three numbers of a version."""
    return [*map(int, re.findall(r'\d+', version)), 0, 0][:3]
