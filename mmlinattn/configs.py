"""Reads configs of other libraries, for configs of ours that take a part of one."""

from importlib.util import find_spec
from pathlib import Path

from mmengine.config import Config, ConfigDict


def library_config(name: str) -> ConfigDict:
    """Read a config of another library, such as
    ``'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'``, with its bases merged.

    MMEngine inherits whole configs, and takes one with an import statement for one in
    the new style, which can't inherit from others. So configs of ours call
    ``__import__('mmlinattn.configs').configs.library_config(...)``, and keep the result
    under a name with two underscores, which heirs do not get.

    Raises:
        FileNotFoundError: If the library has no such config.
        ModuleNotFoundError: If the library is not installed.
    """
    scope, _, path = name.partition('::')
    spec = find_spec(scope)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f'{name!r} needs {scope}, which is not installed')
    folder = Path(spec.origin).parent / '.mim' / 'configs'
    return Config.fromfile(folder / path)._cfg_dict
