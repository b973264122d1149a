"""The config of ours that a new one inherits."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Optional

from mmengine.config import Config

from mmlinattn.hub import find_folder
from mmlinattn.utils import load_config

from .tasks import TASKS

# paths by method and backbone
Bases = dict[tuple[str, str], Path]


@dataclass(frozen=True)
class Base:
    """A config of ours: a method with a backbone."""

    method: str
    backbone: str
    path: Path
    cfg: Config

    @property
    def name(self) -> str:
        """What another config inherits."""
        return f'mmlinattn::{self.path.parent.name}/{self.path.name}'

    @property
    def learns_masks(self) -> bool:
        """True for a detector that needs outlines."""
        return 'segm' in self.cfg.val_evaluator.metric


def find_bases(task: str) -> Bases:
    """Our configs of a task with the shortest schedules."""
    bases: Bases = {}
    paths = (find_folder() / 'configs').glob(f'*/*{TASKS[task].ending}.py')
    for path in sorted(paths, key=_preference):
        words = path.stem.split('_')
        # a classifier's name has no method
        key = ('classifier', words[0]) if task == 'cls' else (words[0], words[1])
        bases.setdefault(key, path)
    return bases


def _preference(path: Path) -> Any:
    """Sorts configs: short schedules and plain ones first."""
    return '1x' not in path.stem, len(path.stem), path


def choose_base(task: str, method: str, backbone: str, has_masks: bool) -> Base:
    """The config of a method and a backbone.

    Raises:
        ValueError: If there is none, or the data lack the outlines that it needs, or
            MMRotate is missing for rotated boxes.
    """
    if task == 'rot' and find_spec('mmrotate') is None:
        text = '--task rot needs MMRotate, which docs/use/mmrotate.md tells to install'
        raise ValueError(text)
    bases = find_bases(task)
    path = bases.get((method, backbone))
    if path is None:
        raise ValueError(
            f'no config has --detector {method} and --backbone {backbone}; there are '
            f'{", ".join(_near_names(bases, method, backbone))}'
        )
    base = Base(method, backbone, path, load_config(str(path)))
    if task == 'det' and base.learns_masks and not has_masks:
        raise ValueError(f'--detector {method} needs outlines, found only boxes')
    return base


def _near_names(bases: Bases, method: str, backbone: str) -> list[str]:
    """Methods with backbones where one of both is as wished, or else all methods."""
    near = [' '.join(key) for key in sorted(bases) if {*key} & {method, backbone}]
    return near or sorted({other for other, _ in bases})


def find_pretrained(task: str, base: Base, wish: Optional[str]) -> Optional[str]:
    """Weights to start from: those of a wish, those of the base config, or those of
    another task's with the same backbone; None for none, also if the wish is 'none'."""
    pretrained = wish or base.cfg.get('pretrained')
    if not pretrained and task == 'cls':
        pretrained = _pretrained_of_others(base.backbone)
    return None if pretrained == 'none' else pretrained


def _pretrained_of_others(backbone: str) -> Optional[str]:
    """Weights of the backbone in the config of a detector, or else of a segmentor."""
    for task in ('det', 'seg'):
        for (_, name), path in find_bases(task).items():
            if name == backbone:
                return load_config(str(path)).get('pretrained')
    return None
