"""Makes our models known where libraries look models up by name."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from mmengine.config import Config
from mmengine.infer import BaseInferencer

import mmlinattn

from .utils import load_config, register_config_scopes

CLASSIFICATION = 'ImageNet-1k'


@cache
def register() -> None:
    """Make configs and weights of mmlinattn known to the OpenMMLab libraries.

    Afterwards, in this process:

    - ``mmengine.hub.get_config('mmlinattn::soft/softpp-t_in1k.py')`` finds our configs,
      and ``_base_ = 'mmlinattn::...'`` works in every config;
    - ``mmpretrain.list_models`` lists our classifiers, and ``get_model`` and the
      inferencers take their names;
    - inferencers of mmdet and mmseg take the names of our detectors and segmentors.

    Names are those of our configs. Weights of a model that has no public ones are a
    ``FileNotFoundError``.

    Raises:
        FileNotFoundError: If the package has no configs.
    """
    register_config_scopes()
    folder = find_folder()
    models = read_models(folder)
    if find_spec('mmpretrain'):
        add_to_mmpretrain(models, folder)
    add_to_inferencers(models, folder)


def find_folder() -> Path:
    """The folder of the model index and the configs, installed or in a source tree.

    Raises:
        FileNotFoundError: If they are in neither place.
    """
    package = Path(mmlinattn.__file__).resolve().parent
    for folder in (package / '.mim', package.parent):
        if (folder / 'model-index.yml').is_file():
            return folder
    raise FileNotFoundError(
        f'{package}/.mim/model-index.yml: there is no such file; install mmlinattn'
    )


def read_models(folder: Path) -> dict[str, dict[str, Any]]:
    """Entries of the metafiles by name."""
    index = yaml.safe_load((folder / 'model-index.yml').read_text('utf-8'))
    files = (yaml.safe_load((folder / x).read_text('utf-8')) for x in index['Import'])
    return {entry['Name']: entry for file in files for entry in file['Models']}


def weights_of(entry: dict[str, Any]) -> str:
    """The address of a model's weights, or a text for MMEngine's error."""
    name = entry['Name']
    return entry.get('Weights', f'public weights of {name} (there are none: train it)')


def add_to_mmpretrain(models: dict[str, dict[str, Any]], folder: Path) -> None:
    """Add our classifiers to MMPretrain's list of models."""
    from mmpretrain.apis.model import ModelHub
    from modelindex.models.Model import Model

    for name, entry in models.items():
        if entry['Metadata']['Training Data'] == CLASSIFICATION:
            model = Model.from_dict(dict(entry, Weights=weights_of(entry)))
            model.config = str(folder / entry['Config'])
            ModelHub._models_dict[name] = model


def add_to_inferencers(models: dict[str, dict[str, Any]], folder: Path) -> None:
    """Let MMEngine's inferencers look names up among ours first."""
    original = BaseInferencer._load_model_from_metafile

    def load(self: BaseInferencer, model: str) -> tuple[Config, str]:
        entry = models.get(model.lower())
        if entry is None:
            return original(self, model)
        return load_config(str(folder / entry['Config'])), weights_of(entry)

    BaseInferencer._load_model_from_metafile = load
