"""Finds the teacher of an adaptation: its config, its backbone and its weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Optional

from mmengine.config import Config
from torch import Tensor

from mmlinattn.adaptation import our_backbone
from mmlinattn.cli.parser import error_of
from mmlinattn.engine import build_model as build_whole
from mmlinattn.hub import find_folder
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.own_config import pretrained_of_others
from mmlinattn.parts import build_model
from mmlinattn.public_weights import PublicModel, license_of, read_licenses, read_models
from mmlinattn.runs.preparation import preprocessor_options
from mmlinattn.timm_names import MODELS
from mmlinattn.utils import core_of_config, library_of, load_config
from mmlinattn.utils.log import quiet
from mmlinattn.utils.names import shortlist
from mmlinattn.weights import read_checkpoint
from mmlinattn.weights.class_names import learned_meta
from mmlinattn.weights.conversion import name_weights
from mmlinattn.weights.pretrained import compare_content

PREFIX = 'backbone.'
SCOPED = 'mmlinattn::'
IMAGENET = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
# of a config, the entries that name weights, the last to be loaded first
PLACES = ('load_from', 'pretrained')


@dataclass(frozen=True)
class Teacher:
    """A trained model whose backbone teaches.

    Attributes:
        name (str): As its user typed it.
        base (str): Its config, for the line `_base_` of another one.
        cfg (Config): The config.
        backbone (dict): Config of its backbone, one of ours.
        weights (str): Their path or address.
        model (PublicModel): The public model, if it is one.
        license (str): Of a repository that publishes the weights, '' for none.
    """

    name: str
    base: str
    cfg: Config = field(repr=False)
    backbone: dict[str, Any]
    weights: str
    model: Optional[PublicModel] = None
    license: str = ''

    @property
    def preprocessor(self) -> dict[str, Any]:
        """Mean, standard deviation and order of the channels of its images."""
        options = preprocessor_options(self.cfg)
        statistics = {key: options.get(key) or x for key, x in IMAGENET.items()}
        is_rgb = options.get('to_rgb', options.get('bgr_to_rgb', True))
        return dict(statistics, to_rgb=bool(is_rgb))

    @property
    def size(self) -> int:
        """The side of the images for which it is made."""
        size = self.backbone.get('img_size') or 224
        return size if isinstance(size, int) else max(size)

    def describe(self) -> str:
        """Return what it is, in words."""
        if self.model:
            return self.model.describe()
        license_ = f', license {self.license}' if self.license else ''
        return f'{self.name}, {self.weights}{license_}'


@dataclass(frozen=True)
class Loaded:
    """A teacher's backbone, and what else its checkpoint has.

    Attributes:
        backbone (BaseBackbone): With its weights.
        others (dict[str, Tensor]): Entries of other parts, such as a head.
        is_whole (bool): These are all other parts of the config's model.
        meta (dict): Names and colors of its classes.
    """

    backbone: BaseBackbone
    others: dict[str, Tensor]
    is_whole: bool
    meta: dict[str, Any]


def find_teacher(name: str, weights: Optional[str]) -> Teacher:
    """Return the teacher of a name: the path of a config, a name in 'mmlinattn
    weights', in timm, or of one of our configs.

    Args:
        name: As the option --teacher has it.
        weights: A path or an address in place of those that the config names.

    Raises:
        FileNotFoundError: If there is no such config.
        ValueError: If its backbone is none of ours and has no counterpart, or there
            are no weights.
    """
    folder = find_folder()
    path, base, model = find_config(name, folder)
    cfg = load_config(str(path))
    place = weights or (model and model.address) or weights_of(cfg)
    if place is None and base.startswith(SCOPED):
        place = pretrained_of_others(path.stem.split('_')[0])
    if place is None:
        raise ValueError(
            f'--teacher {name}: it names no weights: give --weights, a path, an '
            'address or timm://MODEL'
        )
    with error_of(f'--teacher {name}: '):
        backbone = our_backbone(backbone_of(cfg), library_of(cfg))
    license_ = license_of(place, read_licenses(folder)) if '://' in place else ''
    model = None if weights else model
    return Teacher(name, base, cfg, backbone, place, model, license_)


def find_config(name: str, folder: Path) -> tuple[Path, str, Optional[PublicModel]]:
    """Return the path of a config by its path or its name in the folder of ours, what
    an heir calls it, and the public model of this name.

    Raises:
        FileNotFoundError: If there is none.
    """
    path = Path(name).expanduser()
    if path.suffix == '.py' and path.is_file():
        return path, path.resolve().as_posix(), None
    models = {model.name: model for model in read_models(folder)}
    config = MODELS[name][0] if name in MODELS else name
    paths = {x.stem: x for x in (folder / 'configs').glob('[!_]*/*.py')}
    if config not in paths:
        near = get_close_matches(name, [*models, *MODELS, *paths], 3)
        hint = f': did you mean {" or ".join(near)}?' if near else ''
        raise FileNotFoundError(
            f'--teacher {name}: there is no such config, and no model of this name'
            f'{hint or ", see mmlinattn weights"}'
        )
    path = paths[config]
    return path, f'{SCOPED}{path.parent.name}/{path.name}', models.get(config)


def backbone_of(cfg: Config) -> dict[str, Any]:
    """Return a copy of the backbone's config, without initial weights."""
    backbone = core_of_config(cfg.get('model')).backbone.to_dict()
    backbone.pop('init_cfg', None)
    return backbone


def weights_of(cfg: Config) -> Optional[str]:
    """Return the weights that a config starts from; None for none."""
    named = [cfg.get(key) for key in PLACES]
    init_cfg = (cfg.get('model') or {}).get('backbone', {}).get('init_cfg') or {}
    if isinstance(init_cfg, Mapping):
        named.append(init_cfg.get('checkpoint'))
    return next((str(place) for place in named if place), None)


def load_teacher(teacher: Teacher) -> Loaded:
    """Build a teacher's backbone, and load its weights.

    Raises:
        ValueError: If the weights are those of other attentions, or can't be read.
        KeyError: If they do not fit.
        ConnectionError: If they can't be downloaded.
    """
    option = '--weights' if teacher.model is None else '--teacher'
    with error_of(f'--teacher {teacher.name}: '):
        backbone = build_model(teacher.backbone)
    title = f'{option}={teacher.weights!r}'
    with quiet():
        backbone.init_weights()
        content = read_checkpoint(teacher.weights, option)
        comparison = compare_content(backbone, content, title)
    if comparison.replaced:
        names = shortlist(comparison.replaced)
        raise ValueError(
            f'{title}: these weights were not trained with {names} of the teacher: '
            'give those of a trained model'
        )
    backbone.load_state_dict(comparison.loaded, strict=False)
    weights, _, _ = name_weights(content)
    others = {key: x for key, x in weights.items() if not key.startswith(PREFIX)}
    with error_of(f'--teacher {teacher.name}: '):
        entries = build_whole(teacher.cfg).state_dict()
    rest = {key for key in entries if not key.startswith(PREFIX)}
    is_whole = bool(rest) and rest <= others.keys()
    return Loaded(backbone, others, is_whole, learned_meta(content))
