"""Makes our models known where libraries look models up by name."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import mmlinattn


@cache
def register() -> None:
    """Make configs and weights of mmlinattn known to the OpenMMLab libraries.

    Afterwards, in this process:

    - ``mmengine.hub.get_config('mmlinattn::soft/softpp-t_in1k.py')`` finds our configs,
      and ``_base_ = 'mmlinattn::...'`` works in every config;
    - MMEngine loads checkpoints from ``file://`` addresses, and from web addresses with
      a file's name behind ``#/``, as those of our models have;
    - ``mmpretrain.list_models`` lists our models, and ``get_model`` and mmpretrain's
      inferencers take the names of our classifiers, which are those of our configs.

    Raises:
        FileNotFoundError: If the package has no configs.
        ImportError: If MMEngine is missing.
    """
    # MMEngine's: the names of models are read without it
    from .utils.config import register_config_scopes
    from .weights.loaders import add_file_scheme

    register_config_scopes()
    add_file_scheme()
    folder = find_folder()
    if find_spec('mmpretrain'):
        from mmpretrain.apis.model import ModelHub

        ModelHub.register_model_index(folder / 'model-index.yml', folder)


def find_folder() -> Path:
    """Return the folder of the model index and the configs, installed or in a source
    tree; a FileNotFoundError if they are in neither place."""
    package = Path(mmlinattn.__file__).resolve().parent
    for folder in (package / '.mim', package.parent):
        if (folder / 'model-index.yml').is_file():
            return folder
    raise FileNotFoundError(
        f'{package}/.mim/model-index.yml: there is no such file; install mmlinattn'
    )
