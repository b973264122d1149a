"""Linear attention for vision: backbones for the OpenMMLab libraries.

Importing the package costs nothing: it imports neither torch, mmengine nor mmcv.
MMEngine imports ``mmlinattn.registry`` by itself when a config says
``type='mmlinattn.X'``.
"""

import re
import sys
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from .version import __version__, version_info

__all__ = ['__version__', 'register', 'version_info']


class OperatorFinder:
    """Finds ``mmcv._ext`` in ``mmlinattn/ops`` where mmcv itself has none.

    Python asks it last, and only when something imports ``mmcv.ops``.
    """

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != 'mmcv._ext':
            return None
        return spec_from_file_location(name, Path(__file__).parent / 'ops' / '_ext.py')


sys.meta_path.append(OperatorFinder)  # type: ignore[arg-type]


def register() -> None:
    """Make our configs and weights known: see :func:`mmlinattn.hub.register`."""
    from . import hub

    hub.register()


def check_versions() -> None:
    """Compares the installed MMEngine and mmcv with the supported versions, without
    importing them.

    Raises:
        ImportError: If MMEngine is missing, or either has a version that doesn't fit.
    """
    for module, (names, minimum, below, hint) in _LIBRARIES.items():
        needs = f'mmlinattn {__version__} needs {module}>={minimum},<{below}'
        found = {}
        for name in names:
            with suppress(metadata.PackageNotFoundError):
                found[name] = metadata.version(name)
        for name, version in found.items():
            if not _numbers(minimum) <= _numbers(version) < _numbers(below):
                raise ImportError(
                    f'{needs}, but {name} {version} is installed. Try: {hint}'
                )
        # Only the models need mmcv. A source tree on PYTHONPATH has no metadata.
        if module == 'mmengine' and not found and find_spec(module) is None:
            raise ImportError(
                f'{needs}, but none of {", ".join(names)} is installed. Try: {hint}'
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
        ('mmcv', 'mmcv-lite', 'onedl-mmcv'),
        '2.0.0',
        '3.0.0',
        "mim install 'mmcv>=2.0.0,<2.2.0' "
        "(with the onedl packages: mim install 'onedl-mmcv>=2.3.0,<3.0.0')",
    ),
}


def _numbers(version: str) -> list[int]:
    """The first three numbers of a version."""
    return [*map(int, re.findall(r'\d+', version)), 0, 0][:3]
