"""The config of ours that a new one inherits."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Optional

from mmengine.config import Config

from mmlinattn.hub import find_folder
from mmlinattn.utils import load_config

from .tasks import TASKS

# detectors of boxes, whose configs are those of detectors with masks
WITHOUT_MASKS = {'faster-rcnn': 'mask-rcnn', 'cascade-rcnn': 'cascade-mask-rcnn'}
TYPES = {'faster-rcnn': 'FasterRCNN', 'cascade-rcnn': 'CascadeRCNN'}
# classes of the data sets that configs end with, besides those of the tasks
CITYSCAPES = '_cityscapes-768x768', 19
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
        if self.method in WITHOUT_MASKS:
            return False
        return 'segm' in self.cfg.val_evaluator.metric

    @property
    def model(self) -> dict[str, Any]:
        """The config of its model, of a detector of boxes without heads for masks."""
        model = dict(self.cfg.model)
        if self.method in WITHOUT_MASKS:
            roi_head = model['roi_head'].items()
            model['roi_head'] = {k: x for k, x in roi_head if 'mask' not in k}
        return model

    def num_classes(self, task: str) -> int:
        """Return classes of the config."""
        ending, num = CITYSCAPES
        return num if self.path.stem.endswith(ending) else TASKS[task].num_classes


def find_bases(task: str) -> Bases:
    """Our configs of a task with the shortest schedules."""
    bases: Bases = {}
    paths = (find_folder() / 'configs').glob(f'*/*{TASKS[task].ending}.py')
    for path in sorted(paths, key=_preference):
        words = path.stem.split('_')
        # a classifier's name has no method
        key = ('classifier', words[0]) if task == 'cls' else (words[0], words[1])
        bases.setdefault(key, path)
    for boxes, masks in WITHOUT_MASKS.items() if task == 'det' else ():
        bases.update(
            ((boxes, backbone), path)
            for (method, backbone), path in list(bases.items())
            if method == masks
        )
    return bases


def tasks_with(backbone: str) -> list[str]:
    """Return the tasks of which a config of ours has a backbone."""
    return [
        task
        for task in TASKS
        if task != 'rot' and any(name == backbone for _, name in find_bases(task))
    ]


def _preference(path: Path) -> Any:
    """Sort configs: short schedules and plain ones first."""
    return '1x' not in path.stem, len(path.stem), path


def choose_base(
    task: str, method: str, backbone: str, has_masks: bool, own: Optional[str] = None
) -> Base:
    """Return the config of a method and a backbone, or ``own`` one, of a model that
    learned other data than our configs of the task.

    Raises:
        ValueError: If there is none, or the data lack the outlines that it needs, or
            MMRotate is missing for rotated boxes.
    """
    if task == 'rot' and find_spec('mmrotate') is None:
        text = '--task rot needs MMRotate, which docs/use/mmrotate.md tells to install'
        raise ValueError(text)
    bases = find_bases(task)
    path = find_folder() / own if own else bases.get((method, backbone))
    if path is None:
        raise ValueError(
            f'no config has --detector {method} and --backbone {backbone}; there are '
            f'{", ".join(_near_names(bases, method, backbone))}'
        )
    base = Base(method, backbone, path, load_config(str(path)))
    if task == 'det' and base.learns_masks and not has_masks:
        simple = [boxes for boxes, masks in WITHOUT_MASKS.items() if masks == method]
        hint = f': --detector {simple[0]} learns boxes' if simple else ''
        raise ValueError(f'--detector {method} needs outlines, found only boxes{hint}')
    return base


def _near_names(bases: Bases, method: str, backbone: str) -> list[str]:
    """Return methods with backbones where one of both is as wished, or else all
    methods."""
    near = [' '.join(key) for key in sorted(bases) if {*key} & {method, backbone}]
    return near or sorted({other for other, _ in bases})
