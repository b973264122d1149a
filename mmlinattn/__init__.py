"""Linear attention for vision: backbones for the OpenMMLab libraries.

Importing the package costs nothing: it imports neither torch, mmengine nor mmcv.
MMEngine imports ``mmlinattn.registry`` by itself when a config says
``type='mmlinattn.X'``.
"""

import re
import sys
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


def _check_version(
    module: str,
    distributions: tuple[str, ...],
    minimum: str,
    below: str,
    pip_hint: str,
    required: bool,
) -> None:
    """Checks the version of a library without importing it.

    Args:
        module (str): Name under which the library is imported.
        distributions (tuple[str]): Distributions that provide the module.
        minimum (str): The oldest version that works.
        below (str): The first version that is too new.
        pip_hint (str): The command that fixes it.
        required (bool): Whether the library must be there at all.

    Raises:
        ImportError: If a required library is missing, or one that is
            installed has a version that doesn't fit.
    """

    def digits(text: str) -> tuple[int, ...]:
        numbers = re.findall(r'\d+', text)[:3]
        return tuple(int(n) for n in numbers) + (0,) * (3 - len(numbers))

    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    fitting = f'{module}>={minimum},<{below}'
    for name, installed in found.items():
        if not digits(minimum) <= digits(installed) < digits(below):
            raise ImportError(
                f'mmlinattn {__version__} needs {fitting}, but {name} '
                f'{installed} is installed. Try: {pip_hint}'
            )
    # A source tree on PYTHONPATH has no metadata: its version isn't known.
    if required and not found and find_spec(module) is None:
        raise ImportError(
            f'mmlinattn {__version__} needs {fitting}, but none of '
            f'{", ".join(distributions)} is installed. Try: {pip_hint}'
        )


def check_versions() -> None:
    """Compares the installed MMEngine and mmcv with the supported versions.

    Raises:
        ImportError: If MMEngine is missing, or either has a version that doesn't fit.
    """
    _check_version(
        'mmengine',
        ('mmengine', 'onedl-mmengine'),
        '0.10.0',
        '1.0.0',
        "pip install 'mmengine>=0.10.0,<1.0.0' "
        "(with the onedl packages: 'onedl-mmengine>=0.10.8,<1.0.0')",
        required=True,
    )
    # Only the models need mmcv, of any build.
    _check_version(
        'mmcv',
        ('mmcv', 'mmcv-lite', 'onedl-mmcv'),
        '2.0.0',
        '3.0.0',
        "mim install 'mmcv>=2.0.0,<2.2.0' "
        "(with the onedl packages: mim install 'onedl-mmcv>=2.3.0,<3.0.0')",
        required=False,
    )
